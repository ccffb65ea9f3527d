"""Images to features, with and without fine-tuning."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from agra.data.dataset import NoisyDataset
from agra.encode import FineTuning, ImageFeatures, encode, extraction
from agra.encode.image_network import ImageNetwork, has_bfloat16, native_pixels
from agra.encode.pixels import Images
from agra.labels import IGNORE_LABEL

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
TUNING = FineTuning(epochs=2, learning_rate=1e-2, batch_size=8, seed=3)


def images(count, split="train", size=24, labels=None):
    rng = np.random.default_rng(len(split))
    return NoisyDataset(
        inputs=rng.integers(0, 256, (count, size, size, 3), dtype=np.uint8),
        labels=rng.integers(0, 3, count) if labels is None else labels,
        classes=("cat", "dog", "frog"),
        split=split,
    )


SPLITS = {"train": images(20), "test": images(7, "test")}


def saved(network, folder, **preprocessing):
    network.eval().save_pretrained(folder)
    config = {"image_mean": MEAN, "image_std": STD, "size": {"height": 32, "width": 32}}
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**config, **preprocessing}))
    return folder


def tiny_resnet():
    from transformers import ResNetConfig, ResNetModel

    torch.manual_seed(0)
    sizes = {"embedding_size": 4, "hidden_sizes": [4, 8, 16], "depths": [1, 1, 1]}
    return ResNetModel(ResNetConfig(**sizes, layer_type="basic"))


def tiny_vit(**options):
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=32,
        patch_size=8,
    )
    return ViTModel(config, **options)


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    return saved(tiny_resnet(), tmp_path_factory.mktemp("resnet"))


def exact(folder, **options):
    return ImageFeatures(folder, **{"precision": "float32", "batch_size": 8, **options})


def by_hand(network, data, pixels=32):
    """Resized by Pillow, normalised as the model's authors did, in one batch."""
    from PIL import Image

    resized = [
        np.array(Image.fromarray(image).resize((pixels, pixels), Image.Resampling.BICUBIC))
        for image in data.inputs
    ]
    values = torch.tensor(np.stack(resized)).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(part).view(1, 3, 1, 1) for part in (MEAN, STD))
    with torch.no_grad():
        return network.eval()(pixel_values=(values - mean) / std)


def test_features_are_the_pooled_outputs(resnet):
    found = encode(SPLITS, exact(resnet))
    for name, data in SPLITS.items():
        assert found[name].inputs.dtype == np.float32
        wanted = by_hand(tiny_resnet(), data).pooler_output.flatten(1)
        # resized bytes differ from Pillow's by one at most
        np.testing.assert_allclose(found[name].inputs, wanted, atol=0.02)


def test_images_that_have_the_size_are_taken_as_they_are(resnet):
    data = images(5, size=32)
    wanted = by_hand(tiny_resnet(), data).pooler_output.flatten(1)
    found = encode(data, exact(resnet)).inputs
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_files_give_what_arrays_give(resnet, tmp_path):
    from PIL import Image

    paths = []
    for row, pixels in enumerate(SPLITS["train"].inputs):
        paths.append(tmp_path / f"{row}.png")
        Image.fromarray(pixels).save(paths[-1])
    found = encode(SPLITS["train"].replace(inputs=paths), exact(resnet)).inputs
    np.testing.assert_array_equal(found, encode(SPLITS["train"], exact(resnet)).inputs)


def test_files_of_any_size_and_mode_become_square_and_coloured(tmp_path):
    from PIL import Image

    paths = [tmp_path / "grey.png", tmp_path / "wide.png"]
    Image.new("L", (5, 9), 100).save(paths[0])
    Image.new("RGBA", (30, 2), (1, 2, 3, 255)).save(paths[1])
    data = NoisyDataset(inputs=paths, labels=[0, 1], classes=("a", "b"))
    batch = Images(data, pixels=6, resize="bilinear", split="train").batch(0, 9)
    assert batch.shape == (2, 3, 6, 6)
    assert batch[0].unique().tolist() == [100]
    assert batch[1, :, 0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("pixels", [32, 48])
def test_a_transformer_gives_its_class_token(tmp_path, pixels):
    network = tiny_vit(add_pooling_layer=False)
    folder = saved(network, tmp_path)  # as published: what reads it makes a pooler up
    data = images(4, size=pixels)
    options = {} if pixels == 32 else {"interpolate_pos_encoding": True}
    values = torch.tensor(data.inputs).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(part).view(1, 3, 1, 1) for part in (MEAN, STD))
    with torch.no_grad():
        states = network.eval()((values - mean) / std, **options).last_hidden_state
    for output in ("auto", "class-token"):
        found = encode(data, exact(folder, pixels=pixels, output=output)).inputs
        np.testing.assert_allclose(found, states[:, 0], atol=1e-5)


def test_a_pooler_with_weights_is_used_only_when_asked_for(tmp_path):
    network = tiny_vit()
    folder, data = saved(network, tmp_path), images(4, size=32)
    wanted = by_hand(network, data)
    pooled = encode(data, exact(folder, output="pooled")).inputs
    np.testing.assert_allclose(pooled, wanted.pooler_output, atol=1e-5)
    token = encode(data, exact(folder)).inputs
    np.testing.assert_allclose(token, wanted.last_hidden_state[:, 0], atol=1e-5)


def test_efficientnets_images_are_normalised_as_its_own_processor_does(tmp_path):
    from transformers import EfficientNetConfig, EfficientNetModel
    from transformers.models.efficientnet.image_processing_pil_efficientnet import (
        EfficientNetImageProcessorPil as Processor,
    )

    torch.manual_seed(0)
    config = EfficientNetConfig(
        width_coefficient=0.1, depth_coefficient=0.1, hidden_dim=128, image_size=32
    )
    network, data = EfficientNetModel(config).eval(), images(3, size=32)
    for top, offset in ((True, False), (False, False), (False, True)):
        names = {"include_top": top, "rescale_offset": offset}
        folder = saved(network, tmp_path / f"{top}{offset}", **names)
        processor = Processor(do_resize=False, image_mean=MEAN, image_std=STD, **names)
        values = processor(list(data.inputs), return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            wanted = network(values.float()).pooler_output.flatten(1)
        np.testing.assert_allclose(encode(data, exact(folder)).inputs, wanted, atol=1e-4)


def test_preprocessing_settings():
    probe = torch.full((1, 3, 32, 32), 51, dtype=torch.uint8)
    seen = []
    network = tiny_resnet()
    network.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append(kwargs["pixel_values"][0, 0, 0, 0].item()),
        with_kwargs=True,
    )
    off = {"do_rescale": False, "do_normalize": False}
    for preprocessing in ({}, off, {"rescale_factor": 0.5, "image_mean": [0.5] * 3}):
        ImageNetwork(network, preprocessing)(probe)
    assert seen == pytest.approx([0.2, 51, 25])
    assert [native_pixels(part) for part in ({}, {"size": 64}, {"size": {"shortest_edge": 9}})] == [
        224,
        64,
        9,
    ]
    assert native_pixels({"size": 256, "crop_size": {"height": 224, "width": 224}}) == 224


def test_mixed_precision_is_close(resnet):
    low, full = (
        encode(SPLITS["train"], ImageFeatures(resnet, precision=name)).inputs
        for name in ("bfloat16", "float32")
    )
    assert not np.array_equal(low, full)
    cosine = (low * full).sum(1) / np.linalg.norm(low, axis=1) / np.linalg.norm(full, axis=1)
    assert cosine.min() > 0.99
    assert has_bfloat16("cpu") in (True, False)
    assert not has_bfloat16("meta")


def test_half_precision_results(resnet):
    found = encode(SPLITS, exact(resnet, dtype="float16"))["test"].inputs
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, encode(SPLITS, exact(resnet))["test"].inputs, rtol=1e-3)


def test_components_are_those_of_the_training_split(resnet):
    plain, reduced = (encode(SPLITS, exact(resnet, components=n)) for n in (None, 3))
    train = plain["train"].inputs.astype(np.float64)
    axes = np.linalg.svd(train - train.mean(0), full_matrices=False)[2][:3]
    for name in SPLITS:
        wanted = (plain[name].inputs - train.mean(0)) @ axes.T
        found = reduced[name].inputs
        assert found.dtype == np.float32
        signs = np.sign((wanted * found).sum(0))
        np.testing.assert_allclose(found * signs, wanted, atol=1e-4)
    none = {**SPLITS, "test": SPLITS["test"][:0]}
    assert encode(none, exact(resnet, components=3))["test"].inputs.shape == (0, 3)
    assert encode(none, exact(resnet))["test"].inputs.shape == (0, 16)
    with pytest.raises(
        ValueError,
        match=r"Expected `components` to be at most the rows of the train split and the network's "
        r"features \(20, 16\), got 17",
    ):
        encode(SPLITS, exact(resnet, components=17))


def test_broken_and_missing_files_are_named_by_row(resnet, tmp_path):
    from PIL import Image

    good, text, cut = (tmp_path / name for name in ("good.png", "text.png", "cut.png"))
    Image.fromarray(SPLITS["train"].inputs[0]).save(good)
    text.write_text("no image")
    cut.write_bytes(good.read_bytes()[:500])

    def data(*paths):
        return NoisyDataset(inputs=paths, labels=[0] * len(paths), classes=("a", "b"))

    for bad in (text, tmp_path / "none.png"):
        with pytest.raises(
            ValueError, match=rf"Expected `inputs` to be images, got '{bad}' in row 1 of the train"
        ):
            encode(data(good, bad), exact(resnet))
    with pytest.raises(
        ValueError,
        match=rf"Expected a whole image in row 2 of the train split, got '{cut}'",
    ):
        encode(data(good, good, cut), exact(resnet))


def test_numbers_that_are_no_images(resnet):
    for inputs in (np.zeros((2, 8, 8), np.uint8), np.zeros((2, 8, 8, 3)), np.eye(2)):
        data = NoisyDataset(inputs=inputs, labels=[0, 1], classes=("a", "b"))
        with pytest.raises(
            TypeError,
            match=r"Expected images of the train split to be uint8 \(N, H, W, 3\) or paths",
        ):
            encode(data, exact(resnet))


def test_settings_that_cannot_be():
    for name, value in (("output", "last"), ("resize", "nearest"), ("dtype", "float64")):
        with pytest.raises(ValueError, match=f"Expected `{name}` to be one of"):
            ImageFeatures("folder", **{name: value})
    for name in ("pixels", "components", "batch_size"):
        with pytest.raises(ValueError, match=f"Expected `{name}` to be 1 or more, got 0"):
            ImageFeatures("folder", **{name: 0})
    for name in ("epochs", "batch_size"):
        with pytest.raises(ValueError, match=f"Expected `{name}` to be one or more, got 0"):
            FineTuning(**{"epochs": 1, name: 0})
    with pytest.raises(ValueError, match="Expected `learning_rate` to be above 0, got nan"):
        FineTuning(epochs=1, learning_rate=float("nan"))


def test_a_folder_that_does_not_say_how_images_are_normalised(tmp_path):
    tiny_resnet().save_pretrained(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"Expected a preprocessor_config.json, which says how images are"
    ):
        encode(SPLITS, exact(tmp_path))


class StopError(Exception):
    """As an interrupt."""


def stopping(after):
    calls = []

    def progress(*now):
        calls.append(now)
        if len(calls) == after:
            raise StopError

    return progress


def test_a_stopped_extraction_goes_on_from_the_last_whole_part(resnet, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "PART", 8)
    encoder = exact(resnet, batch_size=4)
    whole = encode(SPLITS, encoder)
    with pytest.raises(StopError):
        encode(SPLITS, encoder, cache=tmp_path, progress=stopping(4))  # in the third batch of five
    seen = []
    found = encode(SPLITS, encoder, cache=tmp_path, progress=lambda *now: seen.append(now))
    assert seen[:3] == [("train", 8, 20), ("train", 16, 20), ("train", 20, 20)]
    for name in SPLITS:
        assert isinstance(found[name].inputs.base, np.memmap)
        np.testing.assert_array_equal(found[name].inputs, whole[name].inputs)
    assert len(list(tmp_path.iterdir())) == 1  # what was unfinished is gone


def test_fine_tuning_learns_the_given_labels_and_leaves_randomness_alone(resnet):
    data, before = images(24), torch.get_rng_state()
    data = data.replace(labels=(data.inputs[:, :, :, 0].mean((1, 2)) > 127).astype(int))
    seen = []
    tuned = encode(
        data, exact(resnet, fine_tuning=TUNING), progress=lambda *now: seen.append(now)
    ).inputs
    assert torch.equal(before, torch.get_rng_state())
    assert seen[:4] == [*(("epoch 1 of 2", n, 3) for n in (1, 2, 3)), ("epoch 2 of 2", 1, 3)]
    assert np.abs(tuned - encode(data, exact(resnet)).inputs).max() > 1e-3
    again = encode(data, exact(resnet, fine_tuning=TUNING)).inputs
    np.testing.assert_array_equal(tuned, again)


def test_fine_tuning_is_plain_adam(resnet):
    data = images(8, size=32)
    found = encode(data, exact(resnet, fine_tuning=FineTuning(epochs=1, batch_size=8))).inputs
    network = tiny_resnet().to(memory_format=torch.channels_last)
    torch.manual_seed(0)
    head = torch.nn.Linear(16, 3)
    optimizer = torch.optim.Adam([*network.parameters(), *head.parameters()], lr=1e-3)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor(part).view(1, 3, 1, 1) for part in (MEAN, STD))
    values = torch.tensor(data.inputs).permute(0, 3, 1, 2).float() / 255
    outputs = head(network.train()((values[order] - mean) / std).pooler_output.flatten(1))
    functional.cross_entropy(outputs, torch.tensor(data.labels)[order]).backward()
    optimizer.step()
    wanted = by_hand(network, data).pooler_output.flatten(1)
    np.testing.assert_allclose(found, wanted, atol=2e-3)


@pytest.mark.parametrize("after", [3, 4, 6])
def test_stopped_fine_tuning_goes_on_bit_for_bit(resnet, tmp_path, after):
    encoder = exact(resnet, fine_tuning=TUNING)
    with pytest.raises(StopError):
        encode(SPLITS, encoder, cache=tmp_path, progress=stopping(after))
    seen = []
    found = encode(SPLITS, encoder, cache=tmp_path, progress=lambda *now: seen.append(now))
    assert (seen[0][0] == "epoch 1 of 2") == (after == 3)  # stopped before the epoch was kept
    np.testing.assert_array_equal(found["test"].inputs, encode(SPLITS, encoder)["test"].inputs)


def test_fine_tuning_with_several_or_missing_labels(resnet):
    several = np.random.default_rng(0).integers(0, 2, (20, 3)).astype(np.float32)
    several[0, 0] = np.nan
    missing = np.where(np.arange(20) < 5, IGNORE_LABEL, SPLITS["train"].labels)
    found = []
    for labels in (several, missing):
        data = SPLITS["train"].replace(labels=labels)
        found.append(encode(data, exact(resnet, fine_tuning=TUNING)).inputs)
        assert np.isfinite(found[-1]).all()
    assert not np.array_equal(*found)

"""``agra encode`` through its entry point."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import test_encode_image
from agra.cli import main
from agra.data import catalog
from agra.data.dataset import NoisyDataset
from agra.encode import ImageFeatures, TfIdf, encode, load_encoded

TEXTS = {
    name: NoisyDataset(
        inputs=[f"{name} of words", "other words"],
        labels=[0, 1],
        true_labels=[1, 1],
        classes=("ham", "spam"),
        split=name,
        name="mails",
    )
    for name in ("train", "valid", "test")
}


@pytest.fixture(autouse=True)
def one_set(monkeypatch, tmp_path):
    """A catalog of one set of texts."""

    def load_dataset(name, *, home, progress):
        if name != "mails":
            raise ValueError(f"Expected `name` to be 'mails', got {name!r}.")
        return TEXTS

    monkeypatch.setattr(catalog, "load_dataset", load_dataset)
    monkeypatch.setenv("AGRA_CACHE", str(tmp_path / "cache"))


def run(*arguments):
    return CliRunner().invoke(main, ["encode", *map(str, arguments)])


def test_help_fits_a_screen_and_shows_an_example():
    shown = run("--help").output
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.endswith("\n  Example: agra encode youtube --encoder tfidf -o youtube.npz\n")


def test_a_table_of_ones_own(tmp_path):
    path, output = tmp_path / "mails.csv", tmp_path / "rows.npz"
    path.write_text("text,label,seen\nfree money,spam,1\nlunch at noon,ham,0\n")
    result = run(path, "--encoder", "tfidf", "-o", output)
    assert "train: 2 rows of 5 numbers" in result.output
    assert load_encoded(output)["train"].label_names().tolist() == ["spam", "ham"]
    path.write_text("body,topic\nfree money,spam\n")
    names = ("--text", "body", "--label", "topic")
    assert run(path, "--encoder", "tfidf", *names, "-o", output).exit_code == 0
    path.write_text("text\nfree money\n")
    result = run(path, "--encoder", "tfidf", "-o", output)
    assert result.exit_code == 1
    assert "Nothing was written. Expected a column 'label' in mails.csv" in result.output


def test_texts_become_a_file_of_rows(tmp_path):
    output = tmp_path / "rows.npz"
    for _ in range(2):
        result = run("mails", "--encoder", "tfidf", "-o", output)
        assert result.exit_code == 0, result.output
        assert "train: 2 rows of 4 numbers" in result.output
    found, wanted = load_encoded(output), encode(TEXTS, TfIdf())
    for name, data in wanted.items():
        assert (found[name].inputs != data.inputs).nnz == 0
        assert found[name].true_labels.tolist() == [1, 1]
    with np.load(output, allow_pickle=False) as arrays:
        parts = (arrays[f"test_x_{part}"] for part in ("data", "indices", "indptr"))
        rows = sparse.csr_matrix(tuple(parts), shape=arrays["test_x_shape"])
        assert rows.shape == (2, 4)
        assert arrays["test_labels"].tolist() == [0, 1]
        assert arrays["classes"].tolist() == ["ham", "spam"]
    manifest = json.loads((tmp_path / "rows.npz.json").read_text())
    assert (manifest["name"], manifest["encoder"], manifest["settings"]) == ("mails", "tfidf", {})
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_folder_for_what_is_done(tmp_path):
    run("mails", "--encoder", "tfidf", "-o", tmp_path / "x.npz", "--cache", tmp_path / "own")
    assert (tmp_path / "own").is_dir()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["nails", "--encoder", "tfidf"],
            1,
            "Error: Nothing was written. Expected `name` to be 'mails', got 'nails'.",
        ),
        (["mails", "--encoder", "tfidf", "--model", "m"], 2, "--model means nothing to --encoder"),
        (["mails", "--encoder", "tfidf", "--pixels", "9"], 2, "--pixels means nothing to"),
        (["mails", "--encoder", "sentences"], 2, "--encoder sentences needs a --model."),
        (["mails", "--encoder", "images", "--model", "m"], 1, "got texts; choose another encoder"),
        (["mails", "--encoder", "images", "--model", "m", "--pixels", "0"], 2, "--pixels"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(tmp_path, arguments, code, words):
    result = run(*arguments, "-o", tmp_path / "x.npz")
    assert result.exit_code == code
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind(tmp_path):
    for output in (tmp_path / "rows.csv", tmp_path / "none" / "rows.npz"):
        result = run("mails", "--encoder", "tfidf", "-o", output)
        assert result.exit_code == 2
        assert "--output must be a file that ends in .npz, in a folder that exists" in result.output


def test_images_become_a_file_of_features(tmp_path, monkeypatch):
    folder = test_encode_image.saved(test_encode_image.tiny_resnet(), tmp_path / "resnet")
    splits = test_encode_image.SPLITS
    monkeypatch.setattr(catalog, "load_dataset", lambda name, home, progress: splits)
    arguments = ("cifar", "--encoder", "images", "--model", folder, "--pixels", 16)
    result = run(*arguments, "--components", 3, "-o", tmp_path / "x.npz")
    assert result.exit_code == 0, result.output
    assert "test: 7 rows of 3 numbers" in result.output
    wanted = encode(splits, ImageFeatures(folder, pixels=16, components=3))
    found = load_encoded(tmp_path / "x.npz")
    np.testing.assert_array_equal(found["test"].inputs, wanted["test"].inputs)
    manifest = json.loads((tmp_path / "x.npz.json").read_text())
    assert manifest["settings"]["pixels"] == 16


def test_models_are_passed_on(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    arguments = ("mails", "--encoder", "sentences", "--model", "no/where", "-o", tmp_path / "x.npz")
    result = run(*arguments)
    assert result.exit_code == 1
    assert "without a network pass a folder" in " ".join(result.output.split())

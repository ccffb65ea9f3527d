"""Texts to rows: TF-IDF and sentence embeddings."""

import importlib
import json

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import text_sets
from agra.data.dataset import NoisyDataset
from agra.encode import SentenceEmbeddings, TfIdf, encode
from agra.names import optional

WORDS = ["free", "money", "win", "a", "prize", "now", "lunch", "at", "noon", "for", "you"]


def texts(rows, split="train"):
    return NoisyDataset(
        inputs=rows, labels=[0] * len(rows), classes=("ham", "spam"), split=split, name="mails"
    )


SPLITS = {
    "train": texts(["free money now", "lunch at noon", "win a prize for you"]),
    "valid": texts(["money for lunch"], "valid"),
    "test": texts(["unheard of", "win the free lunch"], "test"),
}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tiny BERT with random weights, as its authors would publish it."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *WORDS]) + "\n")
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=16).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(special) + len(WORDS),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    BertModel(config).eval().save_pretrained(folder)
    return folder


def one_by_one(folder, rows):
    """Mean pooling as a loop over single texts, which need no padding."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    with torch.no_grad():
        return np.stack(
            [
                model.eval()(**tokenizer(row, return_tensors="pt")).last_hidden_state[0].mean(0)
                for row in rows
            ]
        )


def test_tfidf_is_that_of_scikit_learn_fitted_on_the_training_split():
    encoded = encode(SPLITS, TfIdf())
    vectorizer = TfidfVectorizer().fit(SPLITS["train"].inputs)
    for name, data in SPLITS.items():
        rows = encoded[name].inputs
        assert sparse.issparse(rows)
        assert rows.format == "csr"
        assert rows.dtype == np.float32
        np.testing.assert_allclose(
            rows.toarray(), vectorizer.transform(data.inputs).toarray(), atol=1e-6
        )
        assert encoded[name].labels.tolist() == data.labels.tolist()
        assert (encoded[name].name, encoded[name].split) == ("mails", name)
    assert encoded["test"].inputs[0].nnz == 0  # words that training never saw


def test_tfidf_of_the_papers_sets_is_as_the_paper_made_it():
    for name in ("youtube", "sms"):
        splits = {
            split: texts(text_sets.load(name, split)[0], split)
            for split in ("train", "valid", "test")
        }
        encoded = encode(splits, TfIdf())
        for split, (rows, _) in text_sets.encoded(name)[0].items():
            assert (encoded[split].inputs != rows).nnz == 0


def test_one_data_set_is_fitted_on_itself():
    encoded = encode(SPLITS["test"], TfIdf())
    assert isinstance(encoded, NoisyDataset)
    assert encoded.inputs.shape == (2, 6)


def test_a_split_without_rows_stays_without(bert):
    splits = {**SPLITS, "test": texts([], "test")}
    assert encode(splits, TfIdf())["test"].inputs.shape == (0, 10)
    assert encode(splits, SentenceEmbeddings(bert))["test"].inputs.shape == (0, 8)


def test_bad_splits():
    with pytest.raises(ValueError, match="Expected `splits` to hold 'train', which encoders are"):
        encode({"test": SPLITS["test"]}, TfIdf())
    for name in ("../up", "", "a/b", "-x"):
        with pytest.raises(ValueError, match="Expected the names of `splits` to be letters, dig"):
            encode({**SPLITS, name: SPLITS["test"]}, TfIdf())
    numbers = NoisyDataset(inputs=np.eye(2), labels=[0, 1], classes=("a", "b"))
    with pytest.raises(
        TypeError,
        match="Expected texts as inputs of the train split for TfIdf, got numbers; choose another",
    ):
        encode(numbers, TfIdf())
    with pytest.raises(ValueError, match="Expected words in the texts of the train split, got 2"):
        encode(texts(["", "!"]), TfIdf())


def test_embeddings_are_means_over_tokens_in_the_order_of_the_rows(bert):
    found = encode(SPLITS, SentenceEmbeddings(bert, batch_size=2))
    for name, data in SPLITS.items():
        assert found[name].inputs.dtype == np.float32
        np.testing.assert_allclose(found[name].inputs, one_by_one(bert, data.inputs), atol=1e-5)


def test_embeddings_of_length_one(bert):
    plain = encode(SPLITS["train"], SentenceEmbeddings(bert)).inputs
    unit = encode(SPLITS["train"], SentenceEmbeddings(bert, normalise=True)).inputs
    np.testing.assert_allclose(
        unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6
    )


def test_long_texts_are_cut(bert):
    long = encode(texts(["free " * 500, "free " * 14]), SentenceEmbeddings(bert)).inputs
    np.testing.assert_allclose(long[0], long[1], atol=1e-6)
    cut = encode(texts(["free money now", "free"]), SentenceEmbeddings(bert, max_tokens=3)).inputs
    np.testing.assert_allclose(cut[0], cut[1], atol=1e-6)


def test_a_text_without_tokens_has_a_row(bert):
    assert np.isfinite(encode(texts(["", "now"]), SentenceEmbeddings(bert)).inputs).all()


def test_progress_is_reported_and_nothing_else_happens(bert, capfd):
    seen, before = [], torch.get_rng_state()
    encode(SPLITS, SentenceEmbeddings(bert, batch_size=2), progress=lambda *now: seen.append(now))
    assert seen == [("train", 2, 3), ("train", 3, 3), ("valid", 1, 1), ("test", 2, 2)]
    assert torch.equal(before, torch.get_rng_state())
    assert capfd.readouterr() == ("", "")


def test_the_bars_of_others_are_as_before(bert):
    from transformers.utils import logging

    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    encode(SPLITS["train"], SentenceEmbeddings(bert))
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_model_that_is_not_there_names_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for model in ("nobody/nothing-at-all", tmp_path, tmp_path / "nothing"):
        with pytest.raises(
            FileNotFoundError,
            match=r"Expected `model` to be a folder with a config.json, or a model of the Hugging "
            r"Face hub that can be reached, got .*; without a network pass a folder that save_pr",
        ):
            encode(SPLITS, SentenceEmbeddings(model))


def test_a_model_with_missing_weights_is_refused(bert, tmp_path):
    from safetensors.torch import load_file, save_file

    for path in bert.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(bert / "model.safetensors")
    bare = {name: part for name, part in weights.items() if not name.startswith("pooler")}
    save_file(bare, tmp_path / "model.safetensors", {"format": "pt"})
    found = encode(SPLITS["train"], SentenceEmbeddings(tmp_path)).inputs  # needs no pooler
    np.testing.assert_allclose(found, encode(SPLITS["train"], SentenceEmbeddings(bert)).inputs)
    del bare["embeddings.word_embeddings.weight"]
    save_file(bare, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        ValueError,
        match=r"Expected all weights of BertModel in .*, but 1 are missing, such as 'embeddings.w",
    ):
        encode(SPLITS["train"], SentenceEmbeddings(tmp_path))


def test_no_code_that_comes_with_a_model_is_run(bert, tmp_path):
    for path in bert.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((bert / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.C", "AutoModel": "own.M"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text("raise SystemExit('run')\n")
    with pytest.raises(ValueError, match="trust_remote_code"):
        encode(SPLITS["train"], SentenceEmbeddings(tmp_path))


def test_numbers_below_one():
    for name in ("max_tokens", "batch_size"):
        with pytest.raises(ValueError, match=f"Expected `{name}` to be at least 1, got 0"):
            SentenceEmbeddings("folder", **{name: 0})


def test_a_package_that_is_missing(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"Expected the package 'PIL.Image' to be installed; run pip install 'agra\[hugg",
    ):
        optional("PIL.Image", "huggingface")


def test_a_stopped_run_of_embeddings_goes_on(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("agra.encode.text"), "PART", 4)
    data = texts([f"free money{' now' * (n % 5)}" for n in range(12)])
    encoder, cache = SentenceEmbeddings(bert, batch_size=2), tmp_path / "cache"
    whole = encode(data, encoder).inputs
    first, second = [], []

    def stop(split, done, total):
        first.append(done)
        if len(first) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(data, encoder, cache=cache, progress=stop)
    found = encode(data, encoder, cache=cache, progress=lambda *step: second.append(step[1]))
    np.testing.assert_array_equal(found.inputs, whole)
    assert first == [2, 4, 6, 8, 10]
    assert second == [4, 8, 10, 12]  # two parts were there

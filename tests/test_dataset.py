"""A data set keeps its parts together, and nothing in it can be changed."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch.utils.data import DataLoader

from agra import IGNORE_LABEL, Agra
from agra.data.dataset import NoisyDataset

CLASSES = ("ham", "spam")


def texts(**parts):
    wanted = {
        "inputs": ["free money", "lunch?", "win", "see you"],
        "labels": [1, 1, IGNORE_LABEL, 0],
        "true_labels": [1, 0, 1, 0],
        "votes": [[1, -1], [1, 0], [-1, -1], [0, 0]],
        "functions": ("money", "greeting"),
        "ids": ["a", "b", "c", "d"],
        "name": "mails",
    }
    return NoisyDataset(**{"classes": CLASSES, **wanted, **parts})


def tags():
    matrix = np.array([[1, 0, 1], [0, np.nan, 0]])
    truth = np.array([[1, 1, 1], [0, 1, 1]])
    return NoisyDataset(
        inputs=np.eye(2), labels=matrix, true_labels=truth, classes=("red", "round", "big")
    )


def test_what_is_known_of_the_labels():
    data = texts()
    assert len(data) == 4
    assert (data.kind, data.several) == ("texts", False)
    assert data.labelled.tolist() == [True, True, False, True]
    assert data.wrong.tolist() == [False, True, False, False]
    assert data.noise_rate == pytest.approx(1 / 3)
    assert data.label_names().tolist() == ["spam", "spam", None, "ham"]
    assert repr(data) == "<NoisyDataset mails train: 4 texts, 2 classes, 33.3% wrong>"


def test_several_labels():
    data = tags()
    assert data.several
    assert data.labelled.tolist() == [[True, True, True], [True, False, True]]
    assert data.wrong.tolist() == [[False, True, False], [False, False, True]]
    assert data.noise_rate == pytest.approx(2 / 5)
    assert data.label_names().tolist() == [{"red", "big"}, set()]


def test_without_true_labels_nothing_is_known_to_be_wrong():
    data = texts(true_labels=None)
    assert data.noise_rate is None
    assert "wrong" not in repr(data)
    with pytest.raises(ValueError, match="Expected a data set with `true_labels` to tell what is"):
        data.wrong  # noqa: B018  # a property that refuses
    assert texts(labels=[IGNORE_LABEL] * 4).noise_rate is None


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        (slice(1, 3), ["b", "c"]),
        ([3, 0], ["d", "a"]),
        (np.array([True, False, False, True]), ["a", "d"]),
        ([], []),
    ],
)
def test_some_of_the_rows(rows, ids):
    part = texts()[rows]
    assert part.ids.tolist() == ids
    assert len(part) == len(part.inputs) == len(part.votes) == len(part.true_labels)
    assert part.functions == ("money", "greeting")


def test_one_row_and_all_of_them_in_turn():
    data = texts()
    assert data[-1] == ("see you", 0, "d")
    assert [sample.id for sample in data] == ["a", "b", "c", "d"]
    with pytest.raises(IndexError, match=r"Expected a row in \[0, 3\], got 4"):
        data[4]


def test_nothing_can_be_changed():
    data = texts()
    for part in (data.inputs, data.labels, data.true_labels, data.votes, data.ids):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = part[1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.split = "test"
    assert data.replace(split="test").split == "test"


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.coo_array])
def test_numbers_of_any_kind(kind):
    numbers = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    data = texts(inputs=kind(numbers))
    assert data.kind == "numbers"
    features = data[[2, 1]].features()
    dense = features.toarray() if sparse.issparse(features) else features
    assert dense.tolist() == [[3.0, 0.0], [0.0, 2.0]]
    assert data.to_csr().toarray().tolist() == numbers.tolist()
    assert data.to_frame()["x1"].tolist() == [0, 2, 0, 0]
    given, label, row = data.to_torch()[1]
    assert (given.tolist(), int(label), row) == ([0.0, 2.0], 1, 1)


def test_images_are_flattened_for_tables_only():
    images = np.zeros((4, 2, 2, 3), dtype=np.uint8)
    data = texts(inputs=images)
    assert data.features().shape == (4, 12)
    assert data.to_torch()[0][0].shape == (2, 2, 3)


def test_texts_and_paths_are_no_numbers():
    with pytest.raises(TypeError, match="Expected numbers as inputs, got texts; encode them first"):
        texts().features()
    paths = texts(inputs=[Path(name) for name in "abcd"])
    assert paths.kind == "paths"
    assert paths.to_frame()["path"].tolist() == [Path(name) for name in "abcd"]


def test_as_a_table():
    frame = texts().to_frame()
    assert frame.index.tolist() == ["a", "b", "c", "d"]
    assert frame.index.name == "id"
    assert frame.fillna("-").to_dict("list") == {
        "text": ["free money", "lunch?", "win", "see you"],
        "label": ["spam", "spam", "-", "ham"],
        "true_label": ["spam", "ham", "spam", "ham"],
        "money": ["spam", "spam", "-", "ham"],
        "greeting": ["-", "ham", "-", "ham"],
    }


def test_a_judge_takes_it():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(40, 3)).astype(np.float32)
    data = NoisyDataset(inputs=x, labels=(x[:, 0] > 0).astype(int), classes=CLASSES)
    rows = data.to_torch()
    model = torch.nn.Linear(3, 2)
    judge = Agra(model, rows, weights="inverse-frequency")
    for inputs, labels, ids in DataLoader(rows, batch_size=8):
        judge.loss(inputs, labels, ids)
    assert int(judge.ledger.totals["judged"].sum()) == 40
    with pytest.raises(IndexError, match=r"Expected a row in \[0, 39\], got 40"):
        rows[40]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"inputs": ["one"]}, r"Expected one row of `inputs` per label \(4\), got 1"),
        ({"inputs": ["a", "b", 3, "d"]}, "numbers, texts or paths, got int in row 2"),
        ({"labels": [0, 1, 2, 0]}, r"Expected `labels` to be in \[0, 1\], .* got 2 in row 2"),
        ({"labels": [0.5, 1, 1, 0]}, "Expected `labels` to be class indices or a 0/1 matrix"),
        ({"true_labels": [0, -1, 1, 0]}, r"`true_labels` to be in \[0, 1\], .* -1 in row 1"),
        ({"true_labels": [0, 1]}, r"`true_labels` to be shaped as `labels` \(4,\), got \(2,\)"),
        ({"classes": ("ham", "ham")}, "Expected `classes` to be different"),
        (
            {"votes": [[1]] * 3, "functions": ()},
            r"Expected one row of `votes` per label \(4\), got 3",
        ),
        (
            {"votes": [[0, 2]] * 4},
            r"`votes` to be class indices in \[0, 1\], .* got 2 in row 0, funct",
        ),
        ({"functions": ("money",)}, "Expected `functions` to name each of the 2 columns"),
        ({"functions": ("money", "money")}, "Expected `functions` to name each of the 2 columns"),
        ({"split": "testing"}, "Expected `split` to be one of .*; did you mean 'test'"),
        ({"ids": [1, 2, 3]}, r"Expected one of `ids` per label \(4\), got shape \(3,\)"),
        ({"ids": ["a", "b", "a", "c"]}, "Expected `ids` to be different, got 'a' more than"),
    ],
)
def test_parts_that_do_not_fit(parts, message):
    with pytest.raises((ValueError, TypeError), match=message):
        texts(**parts)


def test_a_matrix_that_is_no_label_matrix():
    with pytest.raises(ValueError, match=r"Expected `labels` to be 0, 1 or NaN .*, got 2"):
        NoisyDataset(inputs=np.eye(1), labels=[[0, 2]], classes=CLASSES)
    with pytest.raises(ValueError, match=r"one column per class \(2\), got 3 columns"):
        NoisyDataset(inputs=np.eye(1), labels=[[0, 1, 0]], classes=CLASSES)


def test_a_data_frame_is_numbers():
    frame = pd.DataFrame({"a": [1.0, 2, 5], "b": [3, 4, 5]})
    data = NoisyDataset(inputs=frame, labels=[0, 1, 0], classes=CLASSES)
    assert data.kind == "numbers"
    assert data.features().tolist() == frame.to_numpy().tolist()
    assert NoisyDataset(inputs=frame["a"], labels=[0, 1, 0], classes=CLASSES).inputs.shape == (3,)


def test_of_a_row_of_which_nothing_is_known_there_are_no_names():
    unknown = np.array([[np.nan, np.nan], [0, np.nan]])
    data = NoisyDataset(inputs=np.eye(2), labels=unknown, classes=CLASSES)
    assert data.label_names().tolist() == [None, set()]

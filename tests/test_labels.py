import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agra.labels import (
    IGNORE_LABEL,
    check_labels,
    check_multilabel,
    class_rows,
    is_soft,
    labelled,
    sample_labelled,
)

NAN = math.nan
repeatable = settings(max_examples=50, deadline=None, derandomize=True)
entries = st.sampled_from([0.0, 1.0, 0.25, -100.0, NAN])


def plain_known(entry: float) -> bool:
    return not (math.isnan(entry) or entry == -100)


def test_the_marker_is_the_one_that_torch_ignores():
    assert torch.nn.CrossEntropyLoss().ignore_index == IGNORE_LABEL == -100


@pytest.mark.parametrize(
    ("labels", "soft"),
    [([0, 1, 2], False), ([0.0, 1.0], False), ([[0.5, 0.5]], True), ([[0, 1]], True)],
)
def test_rows_are_soft_and_vectors_are_not(labels, soft):
    assert is_soft(torch.tensor(labels)) is soft


@repeatable
@given(st.lists(st.sampled_from([0, 1, 7, -100]), max_size=6))
def test_integers_are_known_unless_they_are_the_marker(labels):
    found = labelled(torch.tensor(labels, dtype=torch.int64))
    assert found.dtype == torch.bool
    assert found.tolist() == [label != -100 for label in labels]


@repeatable
@given(st.lists(entries, max_size=6))
def test_floats_are_known_unless_they_are_the_marker_or_nan(labels):
    assert labelled(torch.tensor(labels)).tolist() == [plain_known(entry) for entry in labels]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_every_class_of_any_integer_type_is_a_label(dtype):
    classes = torch.arange(256 if dtype == torch.uint8 else 300).to(dtype)
    assert labelled(classes).all()  # -100 modulo 256 is 156


@repeatable
@given(st.integers(1, 4), st.data())
def test_a_sample_is_labelled_when_any_of_its_entries_is(width, data):
    rows = data.draw(st.lists(st.lists(entries, min_size=width, max_size=width), max_size=5))
    labels = torch.tensor(rows).reshape(len(rows), width)
    expected = [any(plain_known(entry) for entry in row) for row in rows]
    assert sample_labelled(labels).tolist() == expected


def test_a_sample_with_a_class_index_is_labelled_unless_it_is_the_marker():
    assert sample_labelled(torch.tensor([2, -100, 0])).tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_class_indices_become_one_hot_rows_in_the_wanted_type(dtype):
    rows = class_rows(torch.tensor([2, 0]), 3, dtype)
    assert rows.dtype == dtype
    assert rows.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_soft_rows_stay_and_take_the_wanted_type():
    rows = class_rows(torch.tensor([[0.25, 0.75]], dtype=torch.float64), 2, torch.float32)
    assert rows.dtype == torch.float32
    assert rows.tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize(
    "labels",
    [
        torch.tensor([0, 2, -100]),
        torch.tensor([-100, -100, -100]),
        torch.tensor([0, 1, 2], dtype=torch.int32),
        torch.tensor([[0.2, 0.3, 0.5], [1, 0, 0], [NAN, NAN, NAN]]),
        torch.tensor([[-100.0] * 3, [0, 0, 1], [0.3333, 0.3333, 0.3333]]),  # to three digits
    ],
    ids=["indices", "none-known", "int32", "soft-nan", "soft-marker"],
)
def test_class_indices_and_rows_of_probabilities_pass(labels):
    check_labels(labels, 3, 3)
    check_labels(labels, 3, None)


def test_without_a_number_of_classes_any_index_passes():
    check_labels(torch.tensor([0, 99]), 2, None)
    check_labels(torch.tensor([[0.5, 0.5]]), 1, None)


def test_an_empty_batch_passes():
    check_labels(torch.empty(0, dtype=torch.int64), 0, 3)


refused: list[tuple[Any, int, int | None, str]] = [
    ([0, 1], 3, 2, r"`labels` to have one entry per sample \(3\), got shape \(2,\)\."),
    (0, 1, 2, r"one entry per sample \(1\), got shape \(\)\."),
    ([[[0.5]]], 1, 1, r"one entry per sample \(1\), got shape \(1, 1, 1\)\."),
    ([0.0, 1.0], 2, 2, r"class indices .* got a vector of torch.float32; convert .* \.long\(\)"),
    ([0j], 1, 2, r"got a vector of torch.complex64"),
    ([0, 3], 2, 3, r"`labels` to be in \[0, 2\], .* or -100 for none, got 3\."),
    ([0, -1], 2, 3, r"`labels` to be in \[0, 2\], .* got -1\."),
    ([-2, 5], 2, 3, r"`labels` to be in \[0, 2\], .* got -2\."),
    ([[0, 1]], 1, 2, r"two-dimensional `labels` .* got torch.int64; .* pass multilabel=True"),
    ([[0.5, 0.5]], 1, 3, r"soft `labels` to have 3 columns, .* got 2\."),
    ([[1.0, 0.0], [0.5, 0.4]], 2, 2, r"non-negative rows that sum to one, got \[0\.5, 0\.4\]"),
    ([[1.5, -0.5]], 1, 2, r"non-negative rows that sum to one, got \[1\.5, -0\.5\]"),
    ([[1.0, NAN]], 1, 2, r"non-negative rows that sum to one, got \[1\.0, nan\]"),
    ([[101.0, -100.0]], 1, 2, r"non-negative rows that sum to one, got \[101\.0, -100\.0\]"),
]


@pytest.mark.parametrize(("labels", "samples", "classes", "text"), refused)
def test_anything_else_is_refused_with_its_reason(labels, samples, classes, text):
    with pytest.raises(ValueError, match=text):
        check_labels(torch.tensor(labels), samples, classes)


@pytest.mark.parametrize(
    "labels",
    [
        torch.tensor([[0, 1], [1, -100]]),
        torch.tensor([[0.0, NAN], [1.0, -100.0]]),
        torch.tensor([[True, False], [False, False]]),
    ],
    ids=["integers", "floats", "booleans"],
)
def test_a_matrix_of_zeros_ones_and_unknowns_passes(labels):
    check_multilabel(labels, (2, 2))


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([0, 1], r"outputs' shape \(2, 2\), got \(2,\)\."),
        ([[0, 1, 1], [0, 1, 1]], r"outputs' shape \(2, 2\), got \(2, 3\)\."),
        ([[0.0, 1.0], [0.5, 1.0]], r"to be 0, 1, or NaN / -100 for unknown, got 0\.5\."),
        ([[0, 1], [2, -1]], r"to be 0, 1, or NaN / -100 for unknown, got 2\."),
    ],
)
def test_any_other_matrix_is_refused_with_its_reason(labels, text):
    with pytest.raises(ValueError, match=text):
        check_multilabel(torch.tensor(labels), (2, 2))


def test_one_class_is_none_to_choose_from():
    text = (
        "Expected `model` to return at least two outputs per sample for one label per sample, got 1"
    )
    with pytest.raises(ValueError, match=text):
        check_labels(torch.zeros(3).long(), 3, 1)


def test_unsigned_class_indices_of_two_bytes_pass():
    check_labels(torch.tensor([0, 2], dtype=torch.uint16), 2, 3)
    with pytest.raises(ValueError, match=r"to be in \[0, 2\].*got 3"):
        check_labels(torch.tensor([0, 3], dtype=torch.uint16), 2, 3)

"""What `y` may be."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agra.estimators.targets import class_codes, label_matrix


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        ([2, 0, 2], [0, 2], [1, 0, 1]),
        (["b", "a"], ["a", "b"], [1, 0]),
        ([True, False], [False, True], [1, 0]),
        ([0.0, np.nan, 1.0], [0.0, 1.0], [0, -100, 1]),
        (["b", None, "a"], ["a", "b"], [1, -100, 0]),
        (np.array([3, 1], dtype=np.uint8), [1, 3], [1, 0]),
        (pd.Series(["x", pd.NA, "y"], dtype="string"), ["x", "y"], [0, -100, 1]),
        (pd.Series(["x", None], dtype="category"), ["x"], [0, -100]),
        (pd.Series([4, None], dtype="Int64"), [4], [0, -100]),
        (pd.DataFrame({"label": [5, 6]}), [5, 6], [0, 1]),
        ([("a", 1), ("a", 0)], [("a", 0), ("a", 1)], [1, 0]),
    ],
)
def test_classes_and_codes(y, classes, codes):
    found, numbers = class_codes(y)
    assert found.tolist() == classes
    assert numbers.tolist() == codes


def test_classes_that_are_not_known():
    with pytest.raises(
        ValueError, match=r"Expected `y` to hold only the classes \['a'\], got \['b'\]"
    ):
        class_codes(["a", "b"], np.array(["a"]))
    with pytest.raises(ValueError, match="Unknown label type"):
        class_codes([0.5, 1.5, 2.7])
    with pytest.raises(ValueError, match="infinity"):
        class_codes([0.0, np.inf])


@pytest.mark.parametrize(
    "y",
    [
        [[0, 1], [1, 1]],
        np.array([[False, True], [True, True]]),
        sparse.csr_matrix([[0, 1], [1, 1]]),
        pd.DataFrame([[0, 1], [1, 1]]),
        [{1}, {0, 1}],
        pd.Series([frozenset({1}), frozenset({0, 1})]),
    ],
)
def test_matrices_and_sets(y):
    classes, matrix = label_matrix(y)
    assert classes.tolist() == [0, 1]
    assert matrix.tolist() == [[0, 1], [1, 1]]


def test_unknown_entries_and_rows():
    classes, matrix = label_matrix(pd.DataFrame({"red": [1, np.nan], "round": [0, 1]}))
    assert classes.tolist() == ["red", "round"]
    assert matrix.isnan().tolist() == [[False, False], [True, False]]
    classes, matrix = label_matrix([["red"], [], None])
    assert classes.tolist() == ["red"]
    np.testing.assert_array_equal(matrix.numpy(), [[1], [0], [np.nan]])


def test_matrices_that_are_none():
    with pytest.raises(
        ValueError, match="Expected `y` to hold 0, 1, or NaN for unknown entries, got 2"
    ):
        label_matrix([[0, 2]])
    with pytest.raises(
        ValueError, match="Expected `y` to be a 0/1 matrix with one column per label"
    ):
        label_matrix([0, 1])
    with pytest.raises(
        ValueError, match="Expected `y` to have one column for each of the 3 labels"
    ):
        label_matrix([[0, 1]], np.arange(3))
    with pytest.raises(ValueError, match="Expected `y` to hold only the classes"):
        label_matrix([{"red"}], np.array(["blue"]))


def test_what_is_missing_in_a_list_makes_no_class():
    classes, codes = class_codes([float("nan"), "a", None, "b"])
    assert classes.tolist() == ["a", "b"]
    assert codes.tolist() == [-100, 0, -100, 1]


@pytest.mark.parametrize("labels", [[True, None, False], [3, None, 1], [0.5, None, 1.5]])
def test_classes_keep_their_type_beside_missing_ones(labels):
    classes, _ = class_codes(labels)
    assert classes.dtype.kind == np.array([labels[0]]).dtype.kind

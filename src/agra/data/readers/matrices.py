"""Matrices to data sets: features, labels and votes, each an array, a matrix or a file."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from agra.data.dataset import NoisyDataset
from agra.data.readers.arrays import Array, check_finite, read_array, whole_numbers
from agra.label_models.majority import majority_vote
from agra.label_models.votes import ABSTAIN


def read_matrices(
    features: Any,
    *,
    labels: Any = None,
    true_labels: Any = None,
    votes: Any = None,
    rule_classes: Any = None,
    classes: Sequence[Any] | None = None,
    split: str = "train",
) -> NoisyDataset:
    """The data set in matrices, each of them an array, a SciPy matrix, or the path of a file.

    Files end with .npy, .npz (one array, or a SciPy matrix) or .csv (numbers, with or without a
    header, which names the labelling functions).

    Args:
        features: (N, ...), dense or sparse.
        labels: Class indices (N,), -100 for none; or a 0/1 matrix (N, K), NaN where unknown. None
            for the majority of the votes.
        true_labels: What is known to be right, in the same way.
        votes: L as snorkel has it: (N, F), the class that each function voted for, -1 where it
            abstained. With `rule_classes`, Z as knodle has it: (N, F), 1 where a rule matches.
        rule_classes: T as knodle has it: (F, K), 1 where a rule speaks for a class.
        classes: The names of the K classes; None for "0", "1", ...
        split: "train", "valid" or "test".

    Raises:
        FileNotFoundError: No such file.
        ValueError: Whatever is not as described, and arrays of Python objects.

    Example:
        >>> votes = [[1, 1], [0, -1], [-1, 1]]
        >>> read_matrices(np.eye(3), votes=votes, classes=["ham", "spam"]).labels.tolist()
        [1, 0, 1]
    """
    inputs = check_finite(read_array(features, "features")[0], "features")
    given, truth = _labels(labels, "labels"), _labels(true_labels, "true_labels")
    cast, functions, count = _votes(votes, rule_classes)
    count = max(count, *(_count(each) for each in (given, truth)))
    names = [str(place) for place in range(count)] if classes is None else list(classes)
    if given is None:
        if cast is None:
            raise ValueError("Expected `labels` or `votes` beside `features`, got neither.")
        given = majority_vote(cast, len(names), uncovered="unlabelled")
    return NoisyDataset(
        inputs=inputs,
        labels=given,
        classes=names,
        true_labels=truth,
        votes=cast,
        functions=functions,
        split=split,
    )


def votes_of_rules(matches: Any, rule_classes: Any) -> Array:
    """The class that each rule speaks for, where it matches: (N, F), -1 elsewhere.

    Args:
        matches: Z (N, F), 1 where a rule matches; dense or sparse.
        rule_classes: T (F, K), 1 where a rule speaks for a class; dense or sparse.

    Raises:
        ValueError: Entries besides 0 and 1, or a rule that does not speak for exactly one class.

    Example:
        >>> votes_of_rules([[1, 0], [1, 1]], [[0, 1], [1, 0]])
        array([[ 1, -1],
               [ 1,  0]])
    """
    found = sparse.csr_matrix(_zeros_and_ones(matches, "votes"))
    table = sparse.csr_matrix(_zeros_and_ones(rule_classes, "rule_classes"))
    if found.shape[1] != table.shape[0]:
        raise ValueError(
            f"Expected one row of `rule_classes` per column of `votes` ({found.shape[1]}), got "
            f"{table.shape[0]}."
        )
    speakers, spoken = table.nonzero()
    wrong = np.bincount(speakers, minlength=table.shape[0]) != 1
    if wrong.any():
        rule = int(wrong.argmax())
        raise ValueError(
            f"Expected every rule in `rule_classes` to speak for one class, got rule {rule} for "
            f"classes {spoken[speakers == rule].tolist()[:8]}; leave it out, or make it one rule "
            "per class."
        )
    class_of = np.zeros(table.shape[0], dtype=np.int64)
    class_of[speakers] = spoken
    rows, rules = found.nonzero()
    votes = np.full(found.shape, ABSTAIN, dtype=np.int64)
    votes[rows, rules] = class_of[rules]
    return votes


def _votes(votes: Any, rule_classes: Any) -> tuple[Array | None, tuple[str, ...], int]:
    """The votes, who cast them, and how many classes there must be for them."""
    if votes is None:
        if rule_classes is not None:
            raise ValueError("Expected `votes` beside `rule_classes`, which say what rules match.")
        return None, (), 0
    matrix, functions = read_array(votes, "votes")
    if rule_classes is not None:
        rules, _ = read_array(rule_classes, "rule_classes")
        return votes_of_rules(matrix, rules), functions, rules.shape[1]
    if sparse.issparse(matrix):
        raise ValueError(
            "Expected `votes` to be dense, got a sparse matrix, whose zeros would be votes for "
            "class 0; pass `rule_classes` if its ones say which rules match."
        )
    cast = whole_numbers(matrix, "votes")
    return cast, functions, int(cast.max(initial=ABSTAIN)) + 1


def _labels(source: Any, argument: str) -> Array | None:
    if source is None:
        return None
    array, _ = read_array(source, argument)
    if sparse.issparse(array):
        array = array.toarray()
    elif array.ndim == 2 and array.shape[1] == 1:  # a column
        array = array[:, 0]
    return array if array.ndim == 2 else whole_numbers(array, argument)


def _count(labels: Array | None) -> int:
    if labels is None:
        return 0
    return labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=-1)) + 1


def _zeros_and_ones(source: Any, argument: str) -> Any:
    array = source.tocsr() if sparse.issparse(source) else np.asarray(source)
    values: Any = array.data if sparse.issparse(array) else array
    wrong = ~np.isin(values, (0, 1))
    if wrong.any() or array.ndim != 2:
        got = values[wrong].flat[0] if wrong.any() else f"{array.ndim} dimensions"
        raise ValueError(f"Expected `{argument}` to be a matrix of 0 and 1, got {got}.")
    return array

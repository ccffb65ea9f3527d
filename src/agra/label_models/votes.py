"""A matrix of votes: what it may hold, and how it is counted."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ABSTAIN = -1  # a vote that was not cast


def as_votes(votes: Any, num_classes: int) -> Array:
    """The votes as whole numbers (N, F), each a class index or negative one for none.

    Args:
        votes: (N, F), class indices, -1 where a function abstained.
        num_classes: How many classes there are.

    Raises:
        ValueError: Rows of different length, anything but whole numbers, or a class there is not.

    Example:
        >>> as_votes([[0, -1], [1, 1]], 2).shape
        (2, 2)
    """
    if num_classes < 1:
        raise ValueError(f"Expected `num_classes` to be at least 1, got {num_classes}.")
    _check_lengths(votes)
    array = np.asarray(votes)
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            "Expected `votes` to be a matrix of whole numbers (rows, functions), got "
            f"{array.dtype} of shape {array.shape}; write -1 where a function abstained."
        )
    wrong = (array < -1) | (array >= num_classes)
    if wrong.any():
        row, column = (int(part[0]) for part in wrong.nonzero())
        raise ValueError(
            f"Expected `votes` to be class indices in [0, {num_classes - 1}], or -1 for none, got "
            f"{array[row, column]} in row {row}, function {column}."
        )
    return array.astype(np.int64, copy=False)


def _check_lengths(votes: Any) -> None:
    if not isinstance(votes, list | tuple):
        return
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in votes]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"Expected `votes` to have as many votes in every row, got {lengths[0]} in row 0 "
                f"and {length} in row {row}; write -1 where a function abstained."
            )


def vote_counts(votes: Any, num_classes: int) -> Array:
    """How many functions voted for each class: (N, K).

    Args:
        votes: (N, F), class indices, -1 where a function abstained.
        num_classes: K.

    Raises:
        ValueError: Votes that are none, as `as_votes` says.

    Example:
        >>> vote_counts([[1, 1, 0], [-1, -1, 1]], 2).tolist()
        [[1, 2], [0, 1]]
    """
    return count_votes(as_votes(votes, num_classes), num_classes)


def count_votes(votes: Array, num_classes: int) -> Array:
    """The same of votes that `as_votes` has seen."""
    cells = votes + np.arange(len(votes))[:, None] * num_classes
    counts = np.bincount(cells[votes >= 0], minlength=len(votes) * num_classes)
    return counts.reshape(len(votes), num_classes)

"""A matrix of votes as its distinct rows, each with how often it occurs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from agra.label_models.votes import Array

_LIMIT = 2**62  # of a number that stands for a part of a row


@dataclass(frozen=True)
class DistinctRows:
    """What a sum over rows needs to know of votes; few functions leave few different rows.

    Attributes:
        cast: (P, F * K), CSR: one where function f votes for class k, in column f * K + k.
        counts: (P,), how many rows look like that.
    """

    cast: Any
    counts: Array


def distinct_rows(votes: Array, num_classes: int) -> DistinctRows:
    """The distinct rows of votes that `as_votes` has seen, in lexicographic order.

    Example:
        >>> rows = distinct_rows(np.array([[1, -1], [0, 1], [1, -1]]), 2)
        >>> rows.cast.toarray().tolist(), rows.counts.tolist()
        ([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]], [1, 2])
    """
    numbers = _row_numbers(votes, num_classes)
    _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    return DistinctRows(one_hot(votes[first], num_classes), counts)


def one_hot(votes: Array, num_classes: int) -> Any:
    """CSR (N, F * K): one where function f votes for class k, in column f * K + k.

    Example:
        >>> one_hot(np.array([[1, -1], [0, 1]]), 2).toarray().tolist()
        [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
    """
    rows, functions = votes.shape
    cast = votes >= 0
    columns = np.broadcast_to(np.arange(functions) * num_classes, votes.shape)[cast]
    columns += votes[cast]  # in place: as many numbers as votes
    ends = np.concatenate([[0], cast.sum(axis=1).cumsum()])
    return sparse.csr_matrix(
        (np.ones(len(columns)), columns, ends), shape=(rows, functions * num_classes)
    )


def _row_numbers(votes: Array, num_classes: int) -> Array:
    """One number per row, the same for the same votes and for no others: (N,).

    As many columns at a time as fit into 64 bits beside the rows told apart so far: exact, where
    a hash is not, and far cheaper than sorting rows.
    """
    base = num_classes + 1
    numbers = np.zeros(len(votes), dtype=np.int64)
    highest = 0  # of `numbers`
    for column in votes.T:
        if (highest + 1) * base > _LIMIT:
            numbers = np.unique(numbers, return_inverse=True)[1]
            highest = len(votes)
        numbers = numbers * base + (column + 1)
        highest = highest * base + num_classes
    return numbers

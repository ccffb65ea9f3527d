"""How often functions vote alike: the overlaps that moment-based label models are fitted on.

A vote of function f for class k is column f * K + k throughout. Rows are taken in blocks, so that
memory does not grow with them, and a row costs the square of its votes, whatever K is.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from agra.label_models.votes import Array

_CELLS = 2**22  # of votes at a time


def overlap_counts(votes: Array, num_classes: int) -> Array:
    """In how many rows each two votes occur together: (F * K, F * K).

    Args:
        votes: (N, F), as `as_votes` returns them.
        num_classes: K.

    Example:
        >>> overlap_counts(np.array([[1, 0], [1, 1], [-1, 0]]), 2).astype(int).tolist()
        [[0, 0, 0, 0], [0, 2, 1, 1], [0, 1, 2, 0], [0, 1, 0, 1]]
    """
    width = votes.shape[1] * num_classes
    counts = np.zeros((width, width))
    for block in _blocks(votes):
        cast = _indicators(block, num_classes)
        counts += (cast.T @ cast).toarray()
    return counts


def add_up(votes: Array, table: Array) -> Array:
    """The sum, over a row's votes, of what the table says of each: (N, K).

    Args:
        votes: (N, F), as `as_votes` returns them.
        table: (F * K, K), what a vote adds to each class.

    Example:
        >>> add_up(np.array([[1, 0], [-1, 0]]), np.array([[1, 0], [0, 1], [2, 0], [0, 2]])).tolist()
        [[2.0, 1.0], [2.0, 0.0]]
    """
    sums = [np.zeros((0, table.shape[1]))]
    sums += [_indicators(block, table.shape[1]) @ table for block in _blocks(votes)]
    return np.concatenate(sums)


def _blocks(votes: Array) -> Iterator[Array]:
    size = max(1, _CELLS // max(1, votes.shape[1]))
    for start in range(0, len(votes), size):
        yield votes[start : start + size]


def _indicators(votes: Array, num_classes: int) -> Any:
    """A one per vote, in a sparse matrix: (N, F * K)."""
    cast = votes >= 0
    functions = cast.nonzero()[1]
    return sparse.csr_array(
        (
            np.ones(len(functions)),
            functions * num_classes + votes[cast],
            np.concatenate([[0], cast.sum(axis=1).cumsum()]),
        ),
        shape=(len(votes), votes.shape[1] * num_classes),
    )

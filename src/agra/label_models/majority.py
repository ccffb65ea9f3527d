"""The majority of the votes, as the paper's noisy labels were made."""

import hashlib
from typing import Any, Literal

import numpy as np

from agra.labels import IGNORE_LABEL
from agra.names import check_name

Array = np.ndarray[Any, Any]


def vote_counts(votes: Array, num_classes: int) -> Array:
    """How many functions voted for each class: (N, K).

    Args:
        votes: (N, F), class indices, -1 where a function abstained.
        num_classes: K.
    """
    counts = np.zeros((len(votes), num_classes), dtype=np.int64)
    rows, columns = np.nonzero(votes >= 0)
    np.add.at(counts, (rows, votes[rows, columns]), 1)
    return counts


def majority_vote(
    votes: Array,
    num_classes: int,
    *,
    ties: Literal["row-hash", "random"] = "row-hash",
    uncovered: Literal["lot", "unlabelled"] = "lot",
    seed: int = 0,
) -> Array:
    """The class with the most votes in every row: (N,).

    Args:
        votes: (N, F), class indices, -1 where a function abstained.
        num_classes: How many classes there are.
        ties: How they fall: "row-hash" by the SHA-1 of the row number, always the same, with which
            the paper's noise rates come out to the printed digit; or "random", by a seed.
        uncovered: Rows without any vote: "lot" counts all classes as tied, "unlabelled" gives them
            ``IGNORE_LABEL``.
        seed: For random ties.

    Raises:
        ValueError: An unknown way.

    Example:
        >>> majority_vote(np.array([[1, 1, 0], [0, -1, 1], [-1, -1, -1]]), 2).tolist()
        [1, 1, 0]
    """
    check_name("ties", ties, ["row-hash", "random"])
    check_name("uncovered", uncovered, ["lot", "unlabelled"])
    counts = vote_counts(votes, num_classes)
    tied = counts == counts.max(axis=1, keepdims=True)
    labels = tied.argmax(axis=1)
    rng = np.random.default_rng(seed)
    for row in np.flatnonzero(tied.sum(axis=1) > 1).tolist():
        among = np.flatnonzero(tied[row])
        labels[row] = among[
            _row_hash(row) % len(among) if ties == "row-hash" else rng.choice(len(among))
        ]
    if uncovered == "unlabelled":
        labels[counts.max(axis=1) == 0] = IGNORE_LABEL
    return labels


def _row_hash(row: int) -> int:
    return int(hashlib.sha1(str(row).encode(), usedforsecurity=False).hexdigest(), 16)

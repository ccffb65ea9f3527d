"""The majority of the votes, as the paper's noisy labels were made."""

import hashlib
from typing import Any, Literal

import numpy as np

from agra.label_models.votes import Array, as_votes, count_votes, vote_counts
from agra.labels import IGNORE_LABEL
from agra.names import check_name

_ROUNDING = 1e-9
_CELLS = 2**22  # of counts at a time: many rows times many classes would not fit into memory


def majority_vote(
    votes: Any,
    num_classes: int,
    *,
    ties: Literal["row-hash", "random"] = "row-hash",
    uncovered: Literal["lot", "unlabelled"] = "lot",
    seed: int = 0,
    first_row: int = 0,
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
        first_row: The number of the first row, where the votes are a part of a larger set.

    Raises:
        ValueError: An unknown way, or votes that are none.

    Example:
        >>> majority_vote([[1, 1, 0], [0, -1, 1], [-1, -1, -1]], 2).tolist()
        [1, 1, 0]
    """
    check_name("ties", ties, ["row-hash", "random"])
    check_name("uncovered", uncovered, ["lot", "unlabelled"])
    votes = as_votes(votes, num_classes)
    rng = np.random.default_rng(seed) if ties == "random" else None
    labels = np.empty(len(votes), dtype=np.int64)
    size = max(1, _CELLS // num_classes)
    for start in range(0, len(votes), size):
        block = slice(start, start + size)
        counts = count_votes(votes[block], num_classes)
        labels[block] = _most(counts, first_row + start, rng)
        if uncovered == "unlabelled":
            labels[block][~counts.any(axis=1)] = IGNORE_LABEL
    return labels


def vote_shares(votes: Any, num_classes: int) -> Array:
    """The share of each class among a row's votes: (N, K), uniform where there is none.

    Args:
        votes: (N, F), class indices, -1 where a function abstained.
        num_classes: K.

    Raises:
        ValueError: Votes that are none.

    Example:
        >>> vote_shares([[1, 1, 1, 0], [-1, -1, -1, -1]], 2).tolist()
        [[0.25, 0.75], [0.5, 0.5]]
    """
    counts = vote_counts(votes, num_classes)
    counts[~counts.any(axis=1)] = 1
    return counts / counts.sum(axis=1, keepdims=True)


def most_probable(shares: Array, *, first_row: int = 0) -> Array:
    """The class with the largest share in every row: (N,); ties fall by the row number.

    Args:
        shares: (N, K); what differs by less than rounding counts as tied.
        first_row: The number of the first row.

    Example:
        >>> most_probable(np.array([[0.2, 0.8], [0.6, 0.4]])).tolist()
        [1, 0]
    """
    return _choose(shares >= shares.max(axis=1, keepdims=True) - _ROUNDING, first_row, None)


def _most(counts: Array, first_row: int, rng: np.random.Generator | None) -> Array:
    return _choose(counts == counts.max(axis=1, keepdims=True), first_row, rng)


def _choose(leading: Array, first_row: int, rng: np.random.Generator | None) -> Array:
    """One of those that lead in each row, by the generator, or by the row number without one."""
    labels = leading.argmax(axis=1)
    tied = np.flatnonzero(leading.sum(axis=1) > 1)
    sizes = leading[tied].sum(axis=1)
    if rng is None:
        hashes = map(_row_hash, (tied + first_row).tolist())
        places = np.array(
            [number % size for number, size in zip(hashes, sizes.tolist(), strict=True)],
            dtype=np.int64,
        )
    else:
        places = rng.integers(sizes)
    passed = leading[tied].cumsum(axis=1)
    labels[tied] = (passed > places[:, None]).argmax(axis=1)
    return labels


def _row_hash(row: int) -> int:
    return int.from_bytes(hashlib.sha1(b"%d" % row, usedforsecurity=False).digest(), "big")

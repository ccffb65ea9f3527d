"""What injecting noise returns, what it asks for, and how shares become whole numbers."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from agra.data.parts import Array, known, label_codes


@dataclass(frozen=True, eq=False)
class Noise:
    """Labels with noise in them, and what became of the true ones.

    Attributes:
        labels: Shaped as the labels that went in.
        matrix: (K, K) counts: `matrix[i, j]` samples of class i were given class j. Where a sample
            may have several labels, (2, 2): entries that were 0 or 1 and are 0 or 1 now.
        rate: The share of wrong ones among the labels, or among the entries.
    """

    labels: Array
    matrix: Array
    rate: float

    @classmethod
    def of(cls, true: Array, noisy: Array, num_classes: int) -> Self:
        """What it took to get from one to the other."""
        there = known(true)
        codes = [labels[there].astype(np.int64) for labels in (true, noisy)]
        cells = np.ravel_multi_index((codes[0], codes[1]), (num_classes, num_classes))
        matrix = np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)
        wrong = matrix.sum() - matrix.trace()
        return cls(noisy, matrix, float(wrong / max(1, matrix.sum())))


def check_amount(amount: float, num_classes: int) -> None:
    """Refuse what no noise can have."""
    check_share("amount", amount)
    if num_classes < 2:
        raise ValueError(f"Expected `num_classes` to be at least 2, got {num_classes}.")


def check_share(argument: str, share: float) -> None:
    """Refuse what is no share."""
    if not 0 <= share <= 1:
        raise ValueError(f"Expected `{argument}` to be in [0, 1], got {share}.")


def single_labels(labels: Any, num_classes: int) -> Array:
    """One class index per sample: (N,)."""
    codes = label_codes(labels, num_classes, "labels")
    if codes.ndim != 1:
        raise ValueError(
            f"Expected `labels` to be one class index per sample, got shape {codes.shape}; for "
            "several labels per sample use `multilabel_noise`."
        )
    return codes


def whole_numbers(expected: Array, rng: np.random.Generator) -> Array:
    """Each rounded down or up by lot, their sum to the nearest: systematic sampling."""
    ends = np.cumsum(expected)
    if not ends.size:
        return np.zeros(0, dtype=np.int64)
    rest = ends[-1] % 1
    start = rng.uniform(0, 1 - rest) if rest < 0.5 else rng.uniform(1 - rest, 1)
    counted = np.minimum(np.floor(ends + start), np.floor(ends[-1] + 0.5))  # sums may round up
    return np.diff(counted, prepend=0).astype(np.int64)

"""Noise that depends on the class alone."""

from typing import Any

import numpy as np

from agra.data.noise.result import Noise, check_amount, single_labels, whole_numbers
from agra.data.parts import Array


def symmetric_noise(labels: Any, amount: float, num_classes: int, *, seed: int = 0) -> Noise:
    """An exact share of every class is given one of the other classes, each as often.

    Args:
        labels: (N,) class indices, ``IGNORE_LABEL`` for none.
        amount: The share to flip, in [0, 1].
        num_classes: K, at least 2.
        seed: Of what is random.

    Raises:
        ValueError: An amount outside [0, 1], only one class, or labels that are none.

    Example:
        >>> noise = symmetric_noise([0, 1, 2] * 20, 0.1, 3)
        >>> noise.rate, noise.matrix.tolist()
        (0.1, [[18, 1, 1], [1, 18, 1], [1, 1, 18]])
    """
    check_amount(amount, num_classes)
    matrix = np.full((num_classes, num_classes), amount / (num_classes - 1))
    np.fill_diagonal(matrix, 1 - amount)
    return matrix_noise(labels, matrix, seed=seed)


def pair_noise(labels: Any, amount: float, num_classes: int, *, seed: int = 0) -> Noise:
    """An exact share of every class is given the next class, and of the last class the first.

    Args:
        labels: (N,) class indices, ``IGNORE_LABEL`` for none.
        amount: The share to flip, in [0, 1].
        num_classes: K, at least 2.
        seed: Of what is random.

    Raises:
        ValueError: An amount outside [0, 1], only one class, or labels that are none.

    Example:
        >>> pair_noise([0, 1, 2] * 20, 0.1, 3).matrix.tolist()
        [[18, 2, 0], [0, 18, 2], [2, 0, 18]]
    """
    check_amount(amount, num_classes)
    stay = np.eye(num_classes)
    return matrix_noise(labels, (1 - amount) * stay + amount * np.roll(stay, 1, axis=1), seed=seed)


def matrix_noise(labels: Any, matrix: Any, *, seed: int = 0) -> Noise:
    """Class i is given class j in the share `matrix[i, j]` of its samples.

    Args:
        labels: (N,) class indices, ``IGNORE_LABEL`` for none.
        matrix: (K, K), shares: no row may hold a negative one, and each sums to one.
        seed: Of what is random.

    Raises:
        ValueError: A matrix that is none, or labels that are none.

    Example:
        >>> matrix_noise([0] * 10 + [1] * 10, [[0.7, 0.3], [0, 1]]).matrix.tolist()
        [[7, 3], [0, 10]]
    """
    others = _row_shares(matrix)
    num_classes = len(others)
    true = single_labels(labels, num_classes)
    np.fill_diagonal(others, 0)
    leaving = np.minimum(others.sum(axis=1), 1)  # which rounding may have brought above
    rng = np.random.default_rng(seed)
    sizes = np.bincount(true[true >= 0], minlength=num_classes)
    flips = whole_numbers(sizes * leaving, rng)
    sorted_rows = np.argsort(true, kind="stable")[len(true) - sizes.sum() :]
    noisy = true.copy()
    for k, rows in enumerate(np.split(sorted_rows, np.cumsum(sizes)[:-1])):
        if flips[k]:
            given = whole_numbers(flips[k] * others[k] / others[k].sum(), rng)
            noisy[rng.permutation(rows)[: flips[k]]] = np.repeat(np.arange(num_classes), given)
    return Noise.of(true, noisy, num_classes)


def _row_shares(matrix: Any) -> Array:
    """A copy whose rows sum to one."""
    shares = np.array(matrix, dtype=np.float64)
    if shares.ndim != 2 or shares.shape[0] != shares.shape[1] or not shares.size:
        raise ValueError(
            f"Expected `matrix` to be one row and one column per class, got shape {shares.shape}."
        )
    sums = shares.sum(axis=1)
    wrong = ~((shares >= 0).all(axis=1) & (np.abs(sums - 1) <= 1e-6))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            "Expected `matrix` to have rows of shares that are not negative and sum to one, got "
            f"{shares[row].tolist()[:8]} in row {row}."
        )
    return shares / sums[:, None]

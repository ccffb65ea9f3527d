"""Noise as confident learning describes it: by an amount and a share of zero noise rates."""

from typing import Any

import numpy as np

from agra.data.noise.by_class import matrix_noise
from agra.data.noise.result import Noise, check_amount, check_share, single_labels
from agra.data.parts import Array


def sparse_noise(
    labels: Any, amount: float, num_classes: int, *, sparsity: float, seed: int = 0
) -> Noise:
    """A few wrong classes for every class, by a random `noise_matrix` for the labels' class sizes.

    Args:
        labels: (N,) class indices, ``IGNORE_LABEL`` for none.
        amount: The share of wrong labels over all classes, in [0, 1].
        num_classes: K, at least 2.
        sparsity: The share of the K (K - 1) ways to be wrong that do not occur.
        seed: Of what is random.

    Raises:
        ValueError: As of `noise_matrix`, or labels that are none.

    Example:
        >>> noise = sparse_noise([0, 1, 2, 3] * 250, 0.2, 4, sparsity=0.5)
        >>> noise.rate, int((noise.matrix == 0).sum())
        (0.2, 6)
    """
    check_amount(amount, num_classes)
    true = single_labels(labels, num_classes)
    sizes = np.bincount(true[true >= 0], minlength=num_classes)
    prior = sizes if sizes.any() else None
    matrix = noise_matrix(num_classes, amount, sparsity=sparsity, prior=prior, seed=seed)
    return matrix_noise(true, matrix, seed=seed)


def noise_matrix(
    num_classes: int, amount: float, *, sparsity: float, prior: Any = None, seed: int = 0
) -> Array:
    """A random matrix of noise rates (K, K), for `matrix_noise`.

    So the noise of the confident-learning papers is described (Northcutt et al. 2021):
    by the share of wrong labels and the share of zeros off the diagonal. Classes differ in how many
    of their labels are wrong; where the amount allows it, each keeps at least half of its own.

    Args:
        num_classes: K, at least 2.
        amount: The share of wrong labels over all classes: the trace is K (1 - amount), where all
            classes are of the same size. At 0 the matrix is the identity.
        sparsity: The share of the K (K - 1) rates off the diagonal that are zero.
        prior: (K,) sizes of the classes; by default all the same.
        seed: Of what is random.

    Raises:
        ValueError: Shares outside [0, 1], only one class, or more zeros than the amount allows.

    Example:
        >>> matrix = noise_matrix(10, 0.2, sparsity=0.6)
        >>> round(float(matrix.trace()), 9), int((matrix == 0).sum())
        (8.0, 54)
    """
    check_amount(amount, num_classes)
    check_share("sparsity", sparsity)
    weights = np.full(num_classes, 1.0) if prior is None else np.asarray(prior, dtype=np.float64)
    if weights.shape != (num_classes,) or (weights < 0).any() or not 0 < weights.sum() < np.inf:
        raise ValueError(
            f"Expected `prior` to be one size per class ({num_classes}), none of them negative and "
            f"not all zero, got {weights.tolist()[:8]}."
        )
    rng = np.random.default_rng(seed)
    places = num_classes * (num_classes - 1)
    places -= round(sparsity * places)
    # every class gets one rate before any gets a second; classes without samples come last
    order = rng.random((num_classes, num_classes - 1))
    order[np.arange(num_classes), order.argmin(axis=1)] -= 1 + (weights > 0)
    parts = np.zeros(order.shape)
    parts.flat[order.argsort(axis=None)[:places]] = rng.uniform(0.1, 1, places)
    rates = _class_rates(amount, weights / weights.sum(), parts.sum(axis=1) > 0, rng)
    matrix = np.diag(1 - rates)
    scale = rates / np.maximum(parts.sum(axis=1), np.finfo(float).tiny)
    matrix[~np.eye(num_classes, dtype=bool)] = (parts * scale[:, None]).ravel()
    return matrix


def _class_rates(amount: float, prior: Array, noisy: Array, rng: np.random.Generator) -> Array:
    """A share of wrong labels per class, zero where none may be wrong; their mean is the amount."""
    mass = prior[noisy].sum()
    if amount > mass + 1e-9:
        raise ValueError(
            "Expected `sparsity` to leave noise in classes that hold the `amount` of the samples "
            f"({amount}), got {mass:.3g} of them; lower one of the two."
        )
    if not amount:
        return np.zeros(len(prior))
    mean = min(1.0, amount / mass)
    spread = rng.uniform(-1, 1, len(prior))
    spread -= (spread * prior)[noisy].sum() / mass
    room = min(mean, (0.5 if mean < 0.5 else 1) - mean)
    spread *= 0.9 * room / max(np.abs(spread[noisy]).max(), 1e-6)  # 0 but for rounding for one
    return np.where(noisy, mean + spread, 0)

"""Noise that depends on where a sample lies."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

from agra.data.noise.result import Noise, check_amount, single_labels, whole_numbers
from agra.data.parts import Array


def instance_noise(
    labels: Any, amount: float, num_classes: int, features: Any, *, seed: int = 0
) -> Noise:
    """Samples that lie nearer to another class are wrong more often, and given that class.

    How near is measured by squared distances d_k to the means of the classes, in units of the
    standard deviation s of what follows: a sample of class y is wrong with probability
    logistic(b + max_k (d_y - d_k) / s), b being such that the mean is the amount, and class k is
    given with a probability that is proportional to exp((d_y - d_k) / s).

    Args:
        labels: (N,) class indices, ``IGNORE_LABEL`` for none.
        amount: The share of wrong labels, in [0, 1].
        num_classes: K, at least 2.
        features: (N, ...) numbers, or a SciPy sparse matrix.
        seed: Of what is random.

    Raises:
        ValueError: An amount outside [0, 1], labels of fewer than two classes, or features that
            are not finite or not as many as the labels.

    Example:
        >>> features = np.array([[0.0], [0.1], [0.9], [2.0], [2.1], [2.2]])
        >>> instance_noise([0, 0, 0, 1, 1, 1], 1 / 6, 2, features).labels.tolist()
        [0, 0, 1, 1, 1, 1]
    """
    check_amount(amount, num_classes)
    true = single_labels(labels, num_classes)
    rows = np.flatnonzero(true >= 0)
    nearness = _nearness(_finite_rows(features, len(true))[rows], true[rows], num_classes)
    rng = np.random.default_rng(seed)
    chances = _chances(nearness.max(axis=1), amount)
    order = rng.permutation(len(rows))
    flipped = order[whole_numbers(chances[order], rng) > 0]
    noisy = true.copy()
    # the largest sum with Gumbel noise falls on each class as the exponentials' shares say
    lots = rng.gumbel(size=(len(flipped), num_classes))
    noisy[rows[flipped]] = (nearness[flipped] + lots).argmax(axis=1)
    return Noise.of(true, noisy, num_classes)


def _finite_rows(features: Any, size: int) -> Any:
    """Numbers of at most 1 as a matrix: an array (N, D) around its mean, or a CSR matrix."""
    rows: Any = features.tocsr() if sparse.issparse(features) else np.asarray(features)
    if not rows.shape or rows.shape[0] != size:
        raise ValueError(
            f"Expected one row of `features` per label ({size}), got shape {rows.shape}."
        )
    values: Array = rows.data if sparse.issparse(rows) else rows
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        given = "NaN or infinity" if values.dtype.kind == "f" else values.dtype
        raise ValueError(
            f"Expected `features` to be finite numbers, got {given}; encode texts and images, and "
            "fill what is missing, first."
        )
    rows = rows.astype(np.float64)
    if not sparse.issparse(rows):
        rows = rows.reshape(size, -1) if rows.size else rows.reshape(size, 0)
        rows = rows - rows.mean(axis=0)  # as distances of what is far from 0 would lose digits
    return rows / (abs(rows).max() or 1) if rows.size else rows


def _nearness(features: Any, codes: Array, num_classes: int) -> Array:
    """How much nearer each class is than the own one: (N, K), the nearest ones standardised."""
    sizes = np.bincount(codes, minlength=num_classes)
    if (sizes > 0).sum() < 2:
        raise ValueError(
            f"Expected `labels` of at least 2 classes to be near to, got {(sizes > 0).sum()}."
        )
    rows = np.arange(len(codes))
    weights = sparse.csr_matrix((1 / sizes[codes], (codes, rows)), (num_classes, len(codes)))
    means = weights @ features
    means = means.toarray() if sparse.issparse(means) else means
    # a sample's own squared norm is in all of its distances
    scores = 2 * (features @ means.T) - (means**2).sum(axis=1)
    nearness = scores - scores[rows, codes][:, None]
    nearness[rows, codes] = -np.inf
    nearness[:, sizes == 0] = -np.inf
    closest = nearness.max(axis=1)
    nearness -= closest.mean()  # else the digits are lost where all lie equally far away
    return nearness / (closest.std() or 1)


def _chances(nearness: Array, amount: float) -> Array:
    """Logistic in the nearness, with the mean that is asked for."""
    if amount in (0, 1):
        return np.full(len(nearness), float(amount))
    reach = float(np.abs(nearness).max()) + 750  # beyond which the logistic function is 0 or 1
    shift = brentq(lambda b: expit(nearness + b).mean() - amount, -reach, reach)
    return expit(nearness + shift)

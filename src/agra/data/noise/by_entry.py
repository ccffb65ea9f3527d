"""Noise in the entries of a 0/1 matrix, where a sample may have several labels."""

from typing import Any, Literal

import numpy as np

from agra.data.noise.result import Noise, check_share
from agra.data.parts import known, label_codes
from agra.names import check_name


def multilabel_noise(
    labels: Any,
    amount: float,
    *,
    kind: Literal["flip", "lose", "add"] = "flip",
    seed: int = 0,
) -> Noise:
    """An exact share of the entries of a 0/1 matrix is turned around.

    Args:
        labels: (N, K), 0 or 1, NaN where unknown.
        amount: The share to turn around, in [0, 1], rounded to whole entries.
        kind: Of which entries: "flip" of all that are known, "lose" of the ones, "add" of the
            zeros.
        seed: Of what is random.

    Raises:
        ValueError: An unknown kind, an amount outside [0, 1], or labels that are no such matrix.

    Example:
        >>> noise = multilabel_noise([[1, 0], [1, 0], [0, 1], [1, np.nan]], 0.5, kind="lose")
        >>> noise.matrix.tolist()
        [[3, 0], [2, 2]]
    """
    check_name("kind", kind, ["flip", "lose", "add"])
    check_share("amount", amount)
    array = np.asarray(labels)
    if array.ndim != 2:
        raise ValueError(
            f"Expected `labels` to be a 0/1 matrix, one column per label, got shape {array.shape}; "
            "for one label per sample use another kind of noise."
        )
    true = label_codes(array, array.shape[1], "labels")
    entries = np.flatnonzero({"flip": known(true), "lose": true == 1, "add": true == 0}[kind])
    rng = np.random.default_rng(seed)
    chosen = rng.choice(entries, round(amount * len(entries)), replace=False, shuffle=False)
    noisy = true.copy()
    noisy.flat[chosen] = 1 - noisy.flat[chosen]
    return Noise.of(true, noisy, 2)

"""The share of each class, from labels that are known to be right."""

from typing import Any

import numpy as np

from agra.label_models.votes import Array


def balance_of(labels: Any, num_classes: int) -> Array:
    """The share of each class among the labels, as a label model's `class_balance`: (K,).

    Args:
        labels: (N,) class indices, say of a validation split; negative where unknown.
        num_classes: K.

    Raises:
        ValueError: Anything but class indices, a class there is not, or no label at all.

    Example:
        >>> balance_of([0, 1, 1, 1, -100], 2).tolist()
        [0.25, 0.75]
    """
    given = np.asarray(labels)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            "Expected `labels` to be a vector of class indices (whole numbers), got "
            f"{given.dtype} of shape {given.shape}."
        )
    known = given[given >= 0]
    if not len(known):
        raise ValueError(
            f"Expected `labels` to hold at least one class index, got {len(given)} entries without "
            "any; leave `class_balance` out for a uniform one."
        )
    if known.max() >= num_classes:
        row = int((given >= num_classes).argmax())
        raise ValueError(
            f"Expected `labels` to be in [0, {num_classes - 1}], or negative for unknown, got "
            f"{given[row]} in row {row}."
        )
    return np.bincount(known.astype(np.int64), minlength=num_classes) / len(known)

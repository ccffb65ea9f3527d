"""What a label may be: a class index, a row of class probabilities, or one 0/1 entry per label.

``IGNORE_LABEL`` marks "no label": a sample delivered without one, or one whose label was dropped.
"""

import torch
from torch import Tensor

IGNORE_LABEL = -100


def is_soft(labels: Tensor) -> bool:
    """Whether `labels` are rows of class probabilities, not class indices."""
    return labels.ndim == 2


def is_distribution(labels: Tensor) -> bool:
    """Whether a matrix of labels holds class probabilities, not one 0/1 entry per label."""
    if not labels.is_floating_point():
        return False
    return bool(((labels.sum(dim=1) - 1).abs() <= 1e-3).all())


def labelled(labels: Tensor) -> Tensor:
    """Which samples (or, for several labels, which entries) carry a label: a boolean tensor.

    NaN counts as unknown too.
    """
    if labels.is_floating_point():
        return ~(labels.isnan() | (labels == IGNORE_LABEL))
    if not labels.dtype.is_signed:  # there -100 would be read modulo 256
        return torch.ones_like(labels, dtype=torch.bool)
    return labels != IGNORE_LABEL


def signed(labels: Tensor) -> Tensor:
    """The same labels in a type that can hold ``IGNORE_LABEL``."""
    return labels if labels.dtype.is_signed else labels.long()


def sample_labelled(labels: Tensor) -> Tensor:
    """Which samples carry any label: (N,) booleans."""
    known = labelled(labels)
    return known.any(dim=1) if known.ndim == 2 else known


def class_rows(labels: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
    """Class indices as one-hot rows (N, K); soft rows as they are."""
    if is_soft(labels):
        return labels.to(dtype)
    rows = torch.zeros(len(labels), num_classes, dtype=dtype, device=labels.device)
    return rows.scatter_(1, labels.long().unsqueeze(1), 1.0)


def check_labels(labels: Tensor, num_samples: int, num_classes: int | None) -> None:
    """Refuse labels that are neither class indices nor rows of probabilities.

    Raises:
        ValueError: A wrong shape, type, class index, or a row that does not sum to one.
    """
    if labels.ndim not in (1, 2) or len(labels) != num_samples:
        raise ValueError(
            f"Expected `labels` to have one entry per sample ({num_samples}), "
            f"got shape {tuple(labels.shape)}."
        )
    if is_soft(labels):
        _check_soft(labels, num_classes)
        return
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(
            "Expected `labels` of a single-label criterion to be class indices (integers) or rows "
            f"of class probabilities, got a vector of {labels.dtype}; convert it with .long()."
        )
    if num_classes == 1:
        raise ValueError(
            "Expected `model` to return at least two outputs per sample for one label per sample, "
            "got 1, which softmax turns into a constant; add an output, or use multilabel=True."
        )
    known = labels[labelled(labels)].long()
    if num_classes is None or not known.numel():
        return
    low, high = int(known.min()), int(known.max())
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"Expected `labels` to be in [0, {num_classes - 1}], one class per output of the "
            f"model, or {IGNORE_LABEL} for none, got {low if low < 0 else high}."
        )


def _check_soft(labels: Tensor, num_classes: int | None) -> None:
    if not labels.is_floating_point():
        raise ValueError(
            "Expected two-dimensional `labels` to be rows of class probabilities (floating), "
            f"got {labels.dtype}; for several labels per sample pass multilabel=True."
        )
    if num_classes is not None and labels.shape[1] != num_classes:
        raise ValueError(
            f"Expected soft `labels` to have {num_classes} columns, one per output of the model, "
            f"got {labels.shape[1]}."
        )
    rows = labels[sample_labelled(labels)]
    wrong = rows[(rows < 0).any(dim=1) | ~((rows.sum(dim=1) - 1).abs() <= 1e-3)]
    if len(wrong):
        raise ValueError(
            "Expected soft `labels` to be non-negative rows that sum to one, "
            f"got {[round(entry, 4) for entry in wrong[0].tolist()]}."
        )


def check_multilabel(labels: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse anything but a 0/1 matrix of the outputs' shape, NaN or ``IGNORE_LABEL`` for unknown.

    Raises:
        ValueError: A wrong shape, or an entry that is no label.
    """
    if tuple(labels.shape) != tuple(shape):
        raise ValueError(
            "Expected `labels` for several labels per sample to have the outputs' shape "
            f"{tuple(shape)}, got {tuple(labels.shape)}."
        )
    known = labels[labelled(labels)]
    wrong = known[(known != 0) & (known != 1)]
    if wrong.numel():
        raise ValueError(
            "Expected `labels` for several labels per sample to be 0, 1, or "
            f"NaN / {IGNORE_LABEL} for unknown, got {wrong[0].item()}."
        )

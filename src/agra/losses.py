"""Criteria: any callable ``(outputs, labels) -> scalar``.

The losses here belong to the whole batch: the F1 of one sample alone is another function. They also
take one weight per sample.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

from agra.labels import class_rows, is_soft, labelled
from agra.names import check_name

Criterion = Callable[..., Tensor]

F1_EPSILON = 1e-5  # the paper's stabiliser, section 3.3


def cross_entropy(outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean cross-entropy of softmax outputs (N, K) with class indices or soft rows.

    Example:
        >>> cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1])).exp().item()
        2.0
    """
    labels = labels.to(outputs.dtype) if is_soft(labels) else labels.long()
    if weights is None:
        return functional.cross_entropy(outputs, labels)
    return functional.cross_entropy(outputs, labels, reduction="none") @ (weights / weights.sum())


def soft_f1(outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """One minus the F1 of softmax outputs (N, K) with class indices or soft rows.

    Two classes: the F1 of class 1 (appendix A). More: the macro F1 (section 3.3).

    Example:
        >>> outputs, labels = torch.tensor([[9.0, -9.0], [-9.0, 9.0]]), torch.tensor([0, 1])
        >>> round(soft_f1(outputs, labels).item(), 3)
        0.0
    """
    truth = class_rows(labels, outputs.shape[1], outputs.dtype)
    shares = None if weights is None else weights.unsqueeze(1)
    probabilities, truth = f1_columns(outputs.softmax(dim=1), truth)
    return 1 - f1_per_column(probabilities, truth, shares)[0].mean()


def binary_cross_entropy(outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """The paper's masked BCE (appendix B) of sigmoid outputs (N, K) with 0/1 labels.

    The mean over labels of the mean over that label's known entries; a label with none adds 0.

    Example:
        >>> outputs, labels = torch.zeros(2, 1), torch.tensor([[1.0], [float("nan")]])
        >>> binary_cross_entropy(outputs, labels).exp().item()
        2.0
    """
    truth, shares = known_entries(outputs, labels, weights)
    losses = functional.binary_cross_entropy_with_logits(outputs, truth, reduction="none")
    return (losses * shares_per_label(shares)).sum()


def multilabel_f1(outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """One minus the macro F1 (appendix A) of sigmoid outputs (N, K) with 0/1 labels.

    Unknown entries count nowhere.

    Example:
        >>> outputs, labels = torch.tensor([[20.0, -20.0]]), torch.tensor([[1, 0]])
        >>> round(multilabel_f1(outputs, labels).item(), 3)
        0.5
    """
    truth, shares = known_entries(outputs, labels, weights)
    return 1 - f1_per_column(outputs.sigmoid(), truth, shares)[0].mean()


# What follows serves one batch (N, K), and several (B, N, K).

_SHORT = 64  # torch takes axes up to here row by row, which is ten times slower than across rows


def softmax(outputs: Tensor) -> Tensor:
    """The probabilities of the classes, laid out class by class if these are few."""
    if outputs.shape[-1] > _SHORT:
        return outputs.softmax(dim=-1)
    return outputs.mT.contiguous().softmax(dim=-2).mT


def log_softmax(outputs: Tensor) -> Tensor:
    """The logarithms of the same."""
    if outputs.shape[-1] > _SHORT:
        return outputs.log_softmax(dim=-1)
    return outputs.mT.contiguous().log_softmax(dim=-2).mT


def f1_columns(probabilities: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Of two classes only the second one's F1 counts."""
    two = probabilities.shape[-1] == 2
    return (probabilities[..., 1:], truth[..., 1:]) if two else (probabilities, truth)


def f1_per_column(
    probabilities: Tensor, truth: Tensor, shares: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The F1 of every column, and its denominator."""
    counted, wanted = probabilities, truth
    if shares is not None:
        counted, wanted = probabilities * shares, truth * shares
    # fp + fn + 2 tp = sum of probabilities + sum of truth
    denominator = (counted + wanted).sum(dim=-2).add(F1_EPSILON)
    return torch.linalg.vecdot(counted, truth, dim=-2).mul(2) / denominator, denominator


def known_entries(outputs: Tensor, labels: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """The 0/1 matrix, and what each of its entries weighs: nothing where unknown."""
    known = labelled(labels)
    shares = known.to(outputs.dtype)
    if weights is not None:
        shares = shares * weights.unsqueeze(-1)
    return torch.where(known, labels, 0).to(outputs.dtype), shares


def shares_per_label(shares: Tensor) -> Tensor:
    """What each entry weighs in the mean over labels of the means over their entries."""
    sums = shares.sum(dim=-2, keepdim=True)
    return shares / torch.where(sums > 0, sums, 1) / shares.shape[-1]


CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {"cross-entropy": cross_entropy, "f1": soft_f1}
)
MULTILABEL_CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {"bce": binary_cross_entropy, "multilabel-f1": multilabel_f1}
)


def find_criterion(
    criterion: str | Criterion, *, multilabel: bool = False, argument: str = "criterion"
) -> Criterion:
    """The criterion of that name; a callable comes back as it is.

    With several labels per sample "f1" means "multilabel-f1". Errors speak of `argument`.

    Raises:
        ValueError: No criterion has that name.
        TypeError: Neither a name nor callable.
    """
    if callable(criterion):
        return criterion
    if not isinstance(criterion, str):
        raise TypeError(
            f"Expected `{argument}` to be a name or a callable (outputs, labels) -> scalar, "
            f"got {type(criterion).__name__}."
        )
    known = {**MULTILABEL_CRITERIA, "f1": multilabel_f1} if multilabel else CRITERIA
    return known[check_name(argument, criterion, known)]


def is_multilabel(criterion: str | Criterion) -> bool:
    """Whether the criterion's name or function is one for several labels per sample."""
    if isinstance(criterion, str):
        return criterion in MULTILABEL_CRITERIA
    return criterion in MULTILABEL_CRITERIA.values()


def batch_loss(
    criterion: Criterion,
    outputs: Tensor,
    labels: Tensor,
    rows: Tensor,
    *,
    weights: Tensor | None = None,
    argument: str = "criterion",
) -> Tensor:
    """The criterion over the chosen samples: a scalar that can be differentiated.

    Errors speak of `argument`.

    Raises:
        ValueError: The criterion returned something else.
    """
    if not bool(rows.all()):
        outputs, labels = outputs[rows], labels[rows]
        weights = None if weights is None else weights[rows]
    loss = criterion(outputs, labels) if weights is None else criterion(outputs, labels, weights)
    attached = isinstance(loss, Tensor) and (loss.requires_grad or not torch.is_grad_enabled())
    if not isinstance(loss, Tensor) or loss.ndim != 0 or not attached:
        given = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise ValueError(
            f"Expected `{argument}` to return a scalar tensor that depends on the outputs, "
            f"got {given}; per-sample losses need .mean()."
        )
    return loss

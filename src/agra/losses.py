"""Criteria, and how they move the outputs: the derivative of a batch's loss, label by label.

A criterion is any callable ``(outputs, labels) -> scalar``. The losses here belong to the whole
batch: the F1 of one sample alone is another function, so no output gradient is ever computed
from a single row. They also take one weight per sample.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from agra.labels import class_rows, is_soft, labelled, sample_labelled
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
    truth, first = class_rows(labels, outputs.shape[1], outputs.dtype), _first_column(outputs)
    shares = None if weights is None else weights.unsqueeze(1)
    return 1 - _f1(outputs.softmax(dim=1)[:, first:], truth[:, first:], shares)[0].mean()


def binary_cross_entropy(outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """The paper's masked BCE (appendix B) of sigmoid outputs (N, K) with 0/1 labels.

    The mean over labels of the mean over that label's known entries; a label with none adds 0.

    Example:
        >>> outputs, labels = torch.zeros(2, 1), torch.tensor([[1.0], [float("nan")]])
        >>> binary_cross_entropy(outputs, labels).exp().item()
        2.0
    """
    truth, shares = _entries(outputs, labels, weights)
    losses = functional.binary_cross_entropy_with_logits(outputs, truth, reduction="none")
    return (losses * _per_label(shares)).sum()


def multilabel_f1(outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """One minus the macro F1 (appendix A) of sigmoid outputs (N, K) with 0/1 labels.

    Unknown entries count nowhere.

    Example:
        >>> outputs, labels = torch.tensor([[20.0, -20.0]]), torch.tensor([[1, 0]])
        >>> round(multilabel_f1(outputs, labels).item(), 3)
        0.5
    """
    truth, shares = _entries(outputs, labels, weights)
    return 1 - _f1(outputs.sigmoid(), truth, shares)[0].mean()


def _first_column(outputs: Tensor) -> int:
    return 1 if outputs.shape[1] == 2 else 0  # of two classes only the second one's F1 counts


def _f1(probabilities: Tensor, truth: Tensor, shares: Tensor | None) -> tuple[Tensor, Tensor]:
    """The F1 of every column, and its denominator."""
    counted, wanted = probabilities, truth
    if shares is not None:
        counted, wanted = probabilities * shares, truth * shares
    # fp + fn + 2 tp = sum of probabilities + sum of truth
    denominator = counted.sum(dim=0) + wanted.sum(dim=0) + F1_EPSILON
    return 2 * (counted * truth).sum(dim=0) / denominator, denominator


def _entries(outputs: Tensor, labels: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """The 0/1 matrix, and what each of its entries weighs: nothing where unknown."""
    known = labelled(labels)
    shares = known.to(outputs.dtype)
    if weights is not None:
        shares = shares * weights.unsqueeze(1)
    return torch.where(known, labels, 0).to(outputs.dtype), shares


def _per_label(shares: Tensor) -> Tensor:
    sums = shares.sum(dim=0)
    return shares / torch.where(sums > 0, sums, 1) / shares.shape[1]


CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {"cross-entropy": cross_entropy, "f1": soft_f1}
)
MULTILABEL_CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {"bce": binary_cross_entropy, "multilabel-f1": multilabel_f1}
)


def find_criterion(criterion: str | Criterion, *, multilabel: bool = False) -> Criterion:
    """The criterion of that name; a callable comes back as it is.

    With several labels per sample "f1" means "multilabel-f1".

    Raises:
        ValueError: No criterion has that name.
        TypeError: Neither a name nor callable.
    """
    if callable(criterion):
        return criterion
    if not isinstance(criterion, str):
        raise TypeError(
            "Expected `criterion` to be a name or a callable (outputs, labels) -> scalar, "
            f"got {type(criterion).__name__}."
        )
    known = {**MULTILABEL_CRITERIA, "f1": multilabel_f1} if multilabel else CRITERIA
    return known[check_name("criterion", criterion, known)]


def is_multilabel(criterion: str | Criterion) -> bool:
    """Whether the criterion's name or function is one for several labels per sample."""
    if isinstance(criterion, str):
        return criterion in MULTILABEL_CRITERIA
    return criterion in MULTILABEL_CRITERIA.values()


def output_gradients(
    criterion: Criterion,
    outputs: Tensor,
    columns: Sequence[Tensor],
    weights: Tensor | None = None,
) -> Tensor:
    """The derivative of the loss in the outputs, once per column of candidate labels: (N, C, K).

    Column c labels the whole batch: entry [n, c] is how the loss of *that* batch changes with the
    outputs of sample n. Samples without a label in a column take no part in its loss.

    Args:
        criterion: The loss of a batch.
        outputs: (N, K); taken as data, so that its graph stays untouched.
        columns: One set of labels of the whole batch per candidate.
        weights: (N,), what each sample weighs in the loss.

    Raises:
        ValueError: The criterion returned something that is not a differentiable scalar.
    """
    found = [loss_and_gradient(criterion, outputs, labels, weights)[1] for labels in columns]
    return found[0].unsqueeze(1) if len(found) == 1 else torch.stack(found, dim=1)


def loss_and_gradient(
    criterion: Criterion, outputs: Tensor, labels: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The loss of a batch, and its derivative in the outputs (N, K).

    Unlabelled samples, and those that weigh nothing, have no part; without any other it is 0.

    Raises:
        ValueError: The criterion returned something that is not a differentiable scalar.
    """
    # half precision has too few digits to tell a small cosine's sign
    values = outputs.detach().to(torch.promote_types(outputs.dtype, torch.float32))
    rows = sample_labelled(labels)
    if weights is not None:
        weights = weights.to(values.dtype)
        rows = rows & (weights != 0)
    counting = int(rows.sum())
    if counting == 0:
        return values.new_zeros(()), torch.zeros_like(values)
    closed = _CLOSED_FORMS.get(criterion)
    if closed is None:
        return _by_autograd(criterion, values, labels, weights, rows)
    if counting < len(rows):
        weights = rows.to(values.dtype) if weights is None else weights * rows
        labels = labels.where(rows.unsqueeze(1) if labels.ndim == 2 else rows, 0)
    return closed(values, labels, weights)


def _by_autograd(
    criterion: Criterion, values: Tensor, labels: Tensor, weights: Tensor | None, rows: Tensor
) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaf = values.clone().requires_grad_()
        loss = batch_loss(criterion, leaf, labels, rows, weights=weights)
        (gradient,) = torch.autograd.grad(loss, leaf)
    return loss.detach(), gradient


def batch_loss(
    criterion: Criterion,
    outputs: Tensor,
    labels: Tensor,
    rows: Tensor,
    *,
    weights: Tensor | None = None,
) -> Tensor:
    """The criterion over the chosen samples: a scalar that can be differentiated.

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
            "Expected `criterion` to return a scalar tensor that depends on the outputs, "
            f"got {given}; per-sample losses need .mean()."
        )
    return loss


# The same losses with their derivatives written out: a graph would cost more than the numbers.


def _cross_entropy(values: Tensor, labels: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    logs, truth = values.log_softmax(dim=1), class_rows(labels, values.shape[1], values.dtype)
    mass = truth.sum(dim=1, keepdim=True) if is_soft(labels) else 1
    gradient = logs.exp() * mass - truth
    shares = 1 / len(values) if weights is None else (weights / weights.sum()).unsqueeze(1)
    return -(logs * truth * shares).sum(), gradient * shares


def _soft_f1(values: Tensor, labels: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    probabilities = values.softmax(dim=1)
    truth, first = class_rows(labels, values.shape[1], values.dtype), _first_column(values)
    shares = None if weights is None else weights.unsqueeze(1)
    loss, slopes = _f1_slopes(probabilities[:, first:], truth[:, first:], shares)
    if first:
        slopes = functional.pad(slopes, (1, 0))
    inner = (slopes * probabilities).sum(dim=1, keepdim=True)
    return loss, probabilities * (slopes - inner)


def _binary_cross_entropy(values: Tensor, labels: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    truth, shares = _entries(values, labels, weights)
    shares = _per_label(shares)
    losses = functional.binary_cross_entropy_with_logits(values, truth, reduction="none")
    return (losses * shares).sum(), (values.sigmoid() - truth) * shares


def _multilabel_f1(values: Tensor, labels: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    probabilities = values.sigmoid()
    loss, slopes = _f1_slopes(probabilities, *_entries(values, labels, weights))
    return loss, slopes * probabilities * (1 - probabilities)


def _f1_slopes(
    probabilities: Tensor, truth: Tensor, shares: Tensor | None
) -> tuple[Tensor, Tensor]:
    f1, denominator = _f1(probabilities, truth, shares)
    slopes = (f1 - 2 * truth) / (denominator * len(f1))
    return 1 - f1.mean(), slopes if shares is None else slopes * shares


_CLOSED_FORMS: Mapping[Criterion, Callable[..., tuple[Tensor, Tensor]]] = MappingProxyType(
    {
        cross_entropy: _cross_entropy,
        soft_f1: _soft_f1,
        binary_cross_entropy: _binary_cross_entropy,
        multilabel_f1: _multilabel_f1,
    }
)

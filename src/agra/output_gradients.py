"""How a criterion moves the outputs: the derivative of a batch's loss, label by label.

No derivative is ever computed from a single row, since a loss belongs to its batch. For the
criteria of this package they are written out, and those of several batches computed together.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from agra.labels import IGNORE_LABEL, class_rows, is_soft, labelled, sample_labelled
from agra.losses import (
    CRITERIA,
    Criterion,
    batch_loss,
    binary_cross_entropy,
    cross_entropy,
    f1_columns,
    f1_per_column,
    known_entries,
    log_softmax,
    multilabel_f1,
    shares_per_label,
    soft_f1,
    softmax,
)

Losses = Callable[[], Tensor]  # worked out when called

_NUMBERS = 2**20  # of outputs that are differentiated at a time
_TINY = 1e-30  # in place of 0, where nothing weighs anything


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
    together = max(1, _NUMBERS // max(1, outputs.numel()))
    weights = None if weights is None else weights.unsqueeze(0)
    parts = [
        losses_and_gradients(
            criterion, outputs.unsqueeze(0), columns[first : first + together], weights
        )[1]
        for first in range(0, len(columns), together)
    ]
    return (parts[0] if len(parts) == 1 else torch.cat(parts)).transpose(0, 1)


def loss_and_gradient(
    criterion: Criterion,
    outputs: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    complete: bool = False,
) -> tuple[Tensor, Tensor]:
    """The loss of a batch, and its derivative in the outputs (N, K).

    Unlabelled samples, and those that weigh nothing, have no part; without any other it is 0. With
    `complete` all labels are known to be there, which saves looking.

    Raises:
        ValueError: The criterion returned something that is not a differentiable scalar.
    """
    weights = None if weights is None else weights.unsqueeze(0)
    losses, gradients = losses_and_gradients(
        criterion, outputs.unsqueeze(0), [labels], weights, complete=complete
    )
    return losses()[0], gradients[0]


def losses_and_gradients(
    criterion: Criterion,
    outputs: Tensor,
    columns: Tensor | Sequence[Tensor],
    weights: Tensor | None,
    *,
    complete: bool = False,
) -> tuple[Losses, Tensor]:
    """The losses (B,) of several batches of one size, if called for, and derivatives (B, N, K).

    Args:
        criterion: The loss of a batch.
        outputs: (B, N, K), or (1, N, K) for the same in all batches.
        columns: The labels of each batch, stacked or one after the other.
        weights: (B, N) or (1, N), what each sample weighs in the loss.
        complete: Whether all labels are known to be there, which saves looking.
    """
    # half precision has too few digits to tell a small cosine's sign
    values = outputs.detach()
    if values.dtype.itemsize < 4:
        values = values.float()
    closed = _CLOSED_FORMS.get(criterion)
    weights = None if weights is None else weights.to(values.dtype)
    if closed is None:
        return _by_autograd(criterion, values, columns, weights)
    single = criterion in CRITERIA.values()
    labels = _stacked(columns, values) if single else _together(columns)
    if complete and weights is None and values.shape[1]:
        return closed(values, labels, None)
    known = labelled(labels)
    if weights is None and bool(known.all()) and values.shape[1]:
        return closed(values, labels, None)
    rows = known.any(dim=2) if known.ndim == 3 else known
    if weights is not None:
        rows = rows & (weights != 0)
    counted = rows.to(values.dtype) if weights is None else weights * rows
    if single:
        labels = labels.where(known, 0) if labels.ndim == 3 else labels.clamp(min=0)
    losses, gradients = closed(values, labels, counted)
    if closed is _cross_entropy:  # which is 0 of nothing by itself
        return losses, gradients
    return lambda: losses().where(rows.any(dim=1), 0), gradients


def _together(columns: Tensor | Sequence[Tensor]) -> Tensor:
    if isinstance(columns, Tensor):
        return columns
    return columns[0].unsqueeze(0) if len(columns) == 1 else torch.stack(tuple(columns))


def _stacked(columns: Tensor | Sequence[Tensor], values: Tensor) -> Tensor:
    """Soft and hard labels side by side become soft ones."""
    several = not isinstance(columns, Tensor) and len(columns) > 1
    if several and any(is_soft(labels) for labels in columns):
        columns = [_soft(labels, values.shape[2], values.dtype) for labels in columns]
    return _together(columns)


def _soft(labels: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
    """Class indices as one-hot rows, those without a label marked as such."""
    if is_soft(labels):
        return labels.to(dtype)
    rows = class_rows(labels.clamp(min=0), num_classes, dtype)
    return rows.masked_fill(~sample_labelled(labels).unsqueeze(1), IGNORE_LABEL)


def _by_autograd(
    criterion: Criterion,
    values: Tensor,
    columns: Tensor | Sequence[Tensor],
    weights: Tensor | None,
) -> tuple[Losses, Tensor]:
    losses, gradients = [], []
    # the linear learner works in inference mode, whose tensors no graph may keep
    with torch.inference_mode(mode=False), torch.enable_grad():
        for place, given in enumerate(columns):
            leaf = values[place if len(values) > 1 else 0].clone().requires_grad_()
            labels = given.clone()
            own = None if weights is None else weights[place if len(weights) > 1 else 0].clone()
            rows = sample_labelled(labels) if own is None else sample_labelled(labels) & (own != 0)
            if bool(rows.any()):
                loss = batch_loss(criterion, leaf, labels, rows, weights=own)
            else:
                loss = leaf[:0].sum()
            gradients.append(torch.autograd.grad(loss, leaf)[0])
            losses.append(loss.detach())
    return lambda: torch.stack(losses), torch.stack(gradients)


# The criteria with their derivatives, for several batches at a time: a graph would cost more than
# the numbers. So would losses that nobody asks for.


def _cross_entropy(values: Tensor, labels: Tensor, weights: Any) -> tuple[Losses, Tensor]:
    logs = log_softmax(values).expand(len(labels), -1, -1)
    if labels.ndim == 3:
        truth = labels.to(values.dtype)
        gradients = logs.exp() * truth.sum(dim=2, keepdim=True) - truth
        entries = (logs * truth).sum(dim=2)
    else:
        places = labels.long().unsqueeze(2)
        chosen = logs.gather(2, places)
        gradients, entries = logs.exp(), chosen.squeeze(2)
        gradients.scatter_(2, places, chosen.expm1())  # p - 1, to the last digit
    if weights is None:
        return lambda: -entries.mean(dim=1), gradients.div_(max(1, values.shape[1]))
    shares = weights / weights.sum(dim=1, keepdim=True).clamp(min=_TINY)
    return lambda: -torch.linalg.vecdot(entries, shares), gradients.mul_(shares.unsqueeze(2))


def _soft_f1(values: Tensor, labels: Tensor, weights: Any) -> tuple[Losses, Tensor]:
    probabilities, truth = softmax(values), _truth(values, labels)
    shares = None if weights is None else weights.unsqueeze(2)
    losses, slopes = _f1_slopes(*f1_columns(probabilities, truth), shares)
    if slopes.shape[2] < values.shape[2]:
        slopes = functional.pad(slopes, (1, 0))
    inner = torch.linalg.vecdot(slopes, probabilities).unsqueeze(2)
    return losses, slopes.sub_(inner).mul_(probabilities)


def _truth(values: Tensor, labels: Tensor) -> Tensor:
    if labels.ndim == 3:
        return labels.to(values.dtype)
    batch, size, classes = len(labels), *values.shape[1:]
    columns = values.new_zeros((batch, classes, size))  # laid out as `softmax` lays out
    return columns.scatter_(1, labels.long().unsqueeze(1), 1.0).mT


def _binary_cross_entropy(values: Tensor, labels: Tensor, weights: Any) -> tuple[Losses, Tensor]:
    truth, shares = known_entries(values, labels, weights)
    shares = shares_per_label(shares)

    def losses() -> Tensor:
        entries = functional.binary_cross_entropy_with_logits(
            values.expand_as(truth), truth, reduction="none"
        )
        return (entries * shares).sum(dim=(1, 2))

    return losses, (values.sigmoid() - truth) * shares


def _multilabel_f1(values: Tensor, labels: Tensor, weights: Any) -> tuple[Losses, Tensor]:
    probabilities = values.sigmoid()
    losses, slopes = _f1_slopes(probabilities, *known_entries(values, labels, weights))
    return losses, slopes * probabilities * (1 - probabilities)


def _f1_slopes(
    probabilities: Tensor, truth: Tensor, shares: Tensor | None
) -> tuple[Losses, Tensor]:
    f1, denominator = f1_per_column(probabilities, truth, shares)
    # the derivative of F1 is (2 truth - F1) over its denominator
    slopes = torch.add(f1.unsqueeze(1), truth, alpha=-2)
    slopes.div_(denominator.mul_(f1.shape[1]).unsqueeze(1))
    return lambda: 1 - f1.mean(dim=1), slopes if shares is None else slopes.mul_(shares)


_CLOSED_FORMS: Mapping[Criterion, Callable[..., tuple[Losses, Tensor]]] = MappingProxyType(
    {
        cross_entropy: _cross_entropy,
        soft_f1: _soft_f1,
        binary_cross_entropy: _binary_cross_entropy,
        multilabel_f1: _multilabel_f1,
    }
)

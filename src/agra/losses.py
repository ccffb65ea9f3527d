"""Criteria, and how they move the outputs: the derivative of a batch's loss, label by label.

A criterion is any callable ``(outputs, labels) -> scalar``. The losses here belong to the whole
batch: the F1 of one sample alone is another function, so no output gradient is ever computed
from a single row.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

from agra.labels import class_rows, is_soft, labelled, sample_labelled
from agra.names import check_name

Criterion = Callable[[Tensor, Tensor], Tensor]

F1_EPSILON = 1e-5  # the paper's stabiliser, section 3.3


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of softmax outputs (N, K) with class indices or soft rows.

    Example:
        >>> cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1])).exp().item()
        2.0
    """
    labels = labels.to(outputs.dtype) if is_soft(labels) else labels.long()
    return functional.cross_entropy(outputs, labels)


def soft_f1(outputs: Tensor, labels: Tensor) -> Tensor:
    """One minus the F1 of softmax outputs (N, K) with class indices or soft rows.

    Two classes: the F1 of class 1 (appendix A). More: the macro F1 (section 3.3).

    Example:
        >>> outputs, labels = torch.tensor([[9.0, -9.0], [-9.0, 9.0]]), torch.tensor([0, 1])
        >>> round(soft_f1(outputs, labels).item(), 3)
        0.0
    """
    num_classes = outputs.shape[1]
    probabilities = outputs.softmax(dim=1)
    truth = class_rows(labels, num_classes, outputs.dtype)
    if num_classes == 2:
        probabilities, truth = probabilities[:, 1:], truth[:, 1:]
    return 1 - _f1_per_column(probabilities, truth).mean()


def binary_cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """The paper's masked BCE (appendix B) of sigmoid outputs (N, K) with 0/1 labels.

    The mean over labels of the mean over that label's known entries; a label with none adds 0.

    Example:
        >>> outputs, labels = torch.zeros(2, 1), torch.tensor([[1.0], [float("nan")]])
        >>> binary_cross_entropy(outputs, labels).exp().item()
        2.0
    """
    known = labelled(labels)
    truth = torch.where(known, labels, 0).to(outputs.dtype)
    entries = functional.binary_cross_entropy_with_logits(outputs, truth, reduction="none")
    return ((entries * known).sum(dim=0) / known.sum(dim=0).clamp(min=1)).mean()


def multilabel_f1(outputs: Tensor, labels: Tensor) -> Tensor:
    """One minus the macro F1 (appendix A) of sigmoid outputs (N, K) with 0/1 labels.

    Unknown entries count nowhere.

    Example:
        >>> outputs, labels = torch.tensor([[20.0, -20.0]]), torch.tensor([[1, 0]])
        >>> round(multilabel_f1(outputs, labels).item(), 3)
        0.5
    """
    known = labelled(labels)
    truth = torch.where(known, labels, 0).to(outputs.dtype)
    return 1 - _f1_per_column(outputs.sigmoid() * known, truth).mean()


def _f1_per_column(probabilities: Tensor, truth: Tensor) -> Tensor:
    true_positives = (probabilities * truth).sum(dim=0)
    # fp + fn = sum of probabilities + sum of truth - 2 tp
    denominator = probabilities.sum(dim=0) + truth.sum(dim=0) + F1_EPSILON
    return 2 * true_positives / denominator


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


def output_gradients(criterion: Criterion, outputs: Tensor, columns: Sequence[Tensor]) -> Tensor:
    """The derivative of the loss in the outputs, once per column of candidate labels: (N, C, K).

    Column c labels the whole batch: entry [n, c] is how the loss of *that* batch changes with the
    outputs of sample n. Samples without a label in a column take no part in its loss.

    Args:
        criterion: The loss of a batch.
        outputs: (N, K); taken as data, so that its graph stays untouched.
        columns: One set of labels of the whole batch per candidate.

    Raises:
        ValueError: The criterion returned something that is not a differentiable scalar.
    """
    # half precision has too few digits to tell a small cosine's sign
    values = outputs.detach().to(torch.promote_types(outputs.dtype, torch.float32))
    gradients = values.new_zeros(len(values), len(columns), values.shape[1])
    for column, labels in enumerate(columns):
        gradients[:, column] = _output_gradient(criterion, values, labels)
    return gradients


def _output_gradient(criterion: Criterion, values: Tensor, labels: Tensor) -> Tensor:
    rows = sample_labelled(labels)
    if not bool(rows.any()):
        return torch.zeros_like(values)
    with torch.enable_grad():
        leaf = values.clone().requires_grad_()
        loss = batch_loss(criterion, leaf, labels, rows)
        (gradient,) = torch.autograd.grad(loss, leaf)
    return gradient


def batch_loss(criterion: Criterion, outputs: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """The criterion over the chosen samples: a scalar that can be differentiated.

    Raises:
        ValueError: The criterion returned something else.
    """
    if not bool(rows.all()):
        outputs, labels = outputs[rows], labels[rows]
    loss = criterion(outputs, labels)
    attached = isinstance(loss, Tensor) and (loss.requires_grad or not torch.is_grad_enabled())
    if not isinstance(loss, Tensor) or loss.ndim != 0 or not attached:
        given = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise ValueError(
            "Expected `criterion` to return a scalar tensor that depends on the outputs, "
            f"got {given}; per-sample losses need .mean()."
        )
    return loss

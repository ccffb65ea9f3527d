"""The gradient of the comparison batch: what every sample of the update batch is held against."""

import torch
from torch import Tensor, nn

from agra.gradients.as_found import judging
from agra.gradients.engine import Gradient, leaves, pull_back
from agra.gradients.parameters import Selection, linear_layer, select_parameters
from agra.inputs import Inputs, call, check_inputs, check_outputs
from agra.labels import check_labels, check_multilabel, sample_labelled
from agra.losses import CRITERIA, Criterion, batch_loss, find_criterion, is_multilabel
from agra.output_gradients import output_gradients


def batch_gradient(
    model: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    criterion: str | Criterion = "cross-entropy",
    *,
    parameters: Selection = None,
    sample_weight: Tensor | None = None,
) -> Gradient:
    """The gradient of a batch's loss, by parameter name. The model is left as found.

    Args:
        model: Any module with outputs (N, K); run in eval mode.
        inputs: A tensor, or a tuple or dict of tensors.
        labels: As the criterion takes them; samples without a label are left out.
        criterion: A name or any ``(outputs, labels) -> scalar``.
        parameters: Which parameters, see `select_parameters`.
        sample_weight: (N,), what each sample weighs in the loss; None for the same.

    Raises:
        ValueError: Inputs, labels or weights that no gradient can come from.

    Example:
        >>> gradient = batch_gradient(nn.Linear(2, 3), torch.eye(2), torch.tensor([0, 2]))
        >>> {name: tuple(part.shape) for name, part in gradient.items()}
        {'weight': (3, 2)}
    """
    multilabel = is_multilabel(criterion)
    loss_of = find_criterion(criterion, multilabel=multilabel)
    check_inputs(model, inputs, labels)
    names = list(select_parameters(model, parameters))
    with judging(model), torch.enable_grad():
        values = leaves(model, names)
        outputs = call(model, inputs, values)
        check_outputs(model, outputs)
        if multilabel:
            check_multilabel(labels, tuple(outputs.shape))
        elif loss_of in CRITERIA.values():  # another callable may take labels of its own kind
            check_labels(labels, len(outputs), outputs.shape[1])
        rows = sample_labelled(labels)
        if sample_weight is not None:
            rows = rows & (sample_weight > 0)
            if not bool(rows.any()):  # the mean over nothing has no gradient
                return pull_back(values, names, outputs[:0].sum())
        loss = batch_loss(loss_of, outputs, labels, rows, weights=sample_weight)
        return pull_back(values, names, loss)


def label_gradients(
    model: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    criterion: str | Criterion = "bce",
    *,
    parameters: Selection = None,
    sample_weight: Tensor | None = None,
) -> Gradient:
    """One gradient of the batch's loss per label, along the first axis: {name: (K, ...)}.

    That of label k is what reaches the parameters through output k alone (Algorithm 2). In a
    linear model this is row k of the weight and nothing else, so there the entries are just these
    rows. The cost is K backward passes for any other model.

    Args:
        model: Any module with outputs (N, K); run in eval mode.
        inputs: A tensor, or a tuple or dict of tensors.
        labels: 0/1 matrix (N, K); NaN or ``IGNORE_LABEL`` where unknown.
        criterion: A name or any ``(outputs, labels) -> scalar``.
        parameters: Which parameters, see `select_parameters`.
        sample_weight: (N,), what each sample weighs in the loss; None for the same.

    Raises:
        ValueError: Inputs, labels or weights that no gradient can come from.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))
        >>> gradients = label_gradients(model, torch.eye(2), torch.tensor([[1, 0, 1], [0, 0, 1]]))
        >>> tuple(gradients["0.weight"].shape)
        (3, 4, 2)
    """
    loss_of = find_criterion(criterion, multilabel=True)
    check_inputs(model, inputs, labels)
    names = list(select_parameters(model, parameters))
    with judging(model), torch.enable_grad():
        values = leaves(model, names)
        outputs = call(model, inputs, values)
        check_outputs(model, outputs)
        check_multilabel(labels, tuple(outputs.shape))
        derivatives = output_gradients(loss_of, outputs, [labels], sample_weight)[:, 0]
        derivatives = derivatives.to(outputs.dtype)
        if linear_layer(model) is not None:
            return pull_back(values, names, outputs, derivatives)
        per_label = []
        for label in range(outputs.shape[1]):
            only = torch.zeros_like(derivatives)
            only[:, label] = derivatives[:, label]
            per_label.append(pull_back(values, names, outputs, only))
    return {name: torch.stack([part[name] for part in per_label]) for name in names}


def check_gradient(model: nn.Module, gradient: Gradient, *, several: bool) -> None:
    """Refuse a comparison gradient that is not of this model.

    Args:
        model: The model to judge with.
        gradient: From `batch_gradient`, or for several labels per sample from `label_gradients`.
        several: Whether there are several labels per sample.

    Raises:
        ValueError: A gradient without or with other names, shapes, types or devices.
    """
    if not gradient:
        raise ValueError("Expected `comparison_gradient` to name a parameter, got none.")
    known = dict(model.named_parameters())
    per_label = several and linear_layer(model) is None
    for name, part in gradient.items():
        if name not in known:
            raise ValueError(
                "Expected `comparison_gradient` to be named as the model's parameters, got "
                f"{name!r}, which is none of {list(known)[:8]}."
            )
        _check_part(name, part, known[name], per_label=per_label)


def _check_part(name: str, part: Tensor, parameter: Tensor, *, per_label: bool) -> None:
    if part.device != parameter.device:
        raise ValueError(
            f"Expected `comparison_gradient` on the device of the model ({parameter.device}), "
            f"got {part.device} for {name!r}."
        )
    shape, wanted = tuple(part.shape), tuple(parameter.shape)
    if (shape[1:] if per_label else shape) != wanted or part.dtype != parameter.dtype:
        source = "label_gradients" if per_label else "batch_gradient"
        lead = "one per label, each " if per_label else ""
        raise ValueError(
            f"Expected `comparison_gradient` as {source} gives it ({name!r}: {lead}{wanted}, "
            f"{parameter.dtype}), got {shape}, {part.dtype}."
        )


class RunningGradient:
    """Comparison gradients averaged over steps; with momentum 0 just the newest, as in the paper.

    The average starts anew when parameters were frozen or unfrozen.

    Attributes:
        momentum: The weight of the past, in [0, 1).

    Raises:
        ValueError: A momentum outside [0, 1).
    """

    def __init__(self, momentum: float = 0.0) -> None:
        if not 0 <= momentum < 1:
            raise ValueError(f"Expected `momentum` to be in [0, 1), got {momentum}.")
        self.momentum = momentum
        self._average: Gradient = {}
        self._weight = 0.0

    def add(self, gradient: Gradient) -> Gradient:
        """The average after this step's gradient. Nothing given or returned is written to."""
        if self.momentum == 0:
            return gradient
        fresh = 1 - self.momentum
        if self._average.keys() != gradient.keys():
            self._average, self._weight = gradient, 0.0
        self._weight = self.momentum * self._weight + fresh
        self._average = {
            name: torch.lerp(self._average[name], part, fresh / self._weight)
            for name, part in gradient.items()
        }
        return self._average

    def state_dict(self) -> dict[str, object]:
        """What a resumed run needs."""
        average = {name: part.clone() for name, part in self._average.items()}
        return {"average": average, "weight": self._weight}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go on from a saved state."""
        average: Gradient = state["average"]  # type: ignore[assignment]  # as state_dict wrote it
        self._average = {name: part.clone() for name, part in average.items()}
        self._weight = float(state["weight"])  # type: ignore[arg-type]  # as above

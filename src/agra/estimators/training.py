"""From an estimator's parameters to a run of the loop."""

from collections.abc import Callable
from copy import deepcopy
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy import sparse
from torch import Tensor, nn

from agra.decisions import MultilabelRule, Rule
from agra.gradients.as_found import judging
from agra.gradients.parameters import Selection
from agra.inputs import as_inputs, call
from agra.judge import Agra
from agra.labels import sample_labelled
from agra.learner import Learner, ModuleLearner
from agra.linear_judge import Judging
from agra.linear_learner import LinearLearner
from agra.linear_model import LinearData, LinearModel
from agra.loop import Loop
from agra.loop import Progress as Where
from agra.losses import binary_cross_entropy, cross_entropy, find_criterion
from agra.rows import as_rows
from agra.train_set import TrainSet

if TYPE_CHECKING:
    from agra.estimators.estimator import AgraEstimator

_PART = 2**14  # rows whose length sets the learning rate
_PREDICTED = 2**12  # rows that are predicted at a time

# a step of Adam is as long whatever the gradient: rows longer than this would be overshot
_LONG = 4.0
_LINEAR_RATE, _MODULE_RATE = 0.01, 0.001
_EPOCHS, _UPDATES = 10, 50  # the paper's; fewer steps of Adam get nowhere


class Training(NamedTuple):
    """What an estimator learns from: only rows that can teach something.

    Attributes:
        features: An array or a CSR matrix.
        labels: Class indices (N,), or a 0/1 matrix (N, K).
        weights: (N,), or None for the same.
        rows: Their numbers in the input; None if all are there.
        total: Rows of the input.
    """

    features: Any
    labels: Tensor
    weights: Tensor | None
    rows: Tensor | None
    total: int

    @classmethod
    def of(
        cls, features: Any, labels: Tensor, weights: Tensor | None, *, unlabelled: bool
    ) -> "Training":
        """Leave out what has no weight, and what has no label unless it may be given one."""
        teaches = torch.ones(len(labels), dtype=torch.bool) if unlabelled else None
        teaches = sample_labelled(labels) if teaches is None else teaches
        if weights is not None:
            teaches = teaches & (weights > 0)
        if bool(teaches.all()):
            return cls(features, labels, weights, None, len(labels))
        rows = teaches.nonzero().squeeze(1)
        weights = None if weights is None else weights[rows]
        return cls(features[rows.numpy()], labels[rows], weights, rows, len(labels))


def make_model(estimator: "AgraEstimator", num_outputs: int) -> nn.Module:
    """The linear model, or a copy of the estimator's own module.

    Raises:
        TypeError: Something that is no module and makes none.
    """
    module, num_features = estimator.module, estimator.n_features_in_
    if module is None:
        return LinearModel(num_features, num_outputs)
    model = deepcopy(module) if isinstance(module, nn.Module) else None
    if model is None and callable(module):
        model = module(num_features, num_outputs)
    if not isinstance(model, nn.Module):
        raise TypeError(
            "Expected `module` to be a torch.nn.Module, or a callable (features, outputs) that "
            f"makes one, got {type(module).__name__}."
        )
    return model


@torch.no_grad()
def check_model(model: nn.Module, features: Any, num_outputs: int) -> None:
    """Refuse a module with another number of outputs.

    Raises:
        ValueError: Not one output per class or label.
    """
    if isinstance(model, LinearModel):
        return
    with judging(model):
        found = call(model, as_inputs(features[:2])).shape[1]
    if found != num_outputs:
        raise ValueError(
            f"Expected `module` to have {num_outputs} outputs, one per class or label, got {found}."
        )


def learning_rate(estimator: "AgraEstimator", features: Any) -> float:
    """The given one, or for "auto" one that fits the length of the rows.

    Raises:
        ValueError: A learning rate or weight decay that Adam cannot take.
    """
    rate, decay = estimator.learning_rate, estimator.weight_decay
    if isinstance(decay, str) or not (np.isfinite(decay) and decay >= 0):
        raise ValueError(f"Expected `weight_decay` to be finite and at least 0, got {decay!r}.")
    if isinstance(rate, str) and rate == "auto":
        if estimator.module is not None:
            return _MODULE_RATE
        length = float(as_rows(features[:_PART]).squared_norms().mean().sqrt())
        return _LINEAR_RATE / max(1.0, length / _LONG)
    if isinstance(rate, str) or not (np.isfinite(rate) and rate > 0):
        raise ValueError(
            f'Expected `learning_rate` to be "auto", or finite and above 0, got {rate!r}.'
        )
    return float(rate)


def num_epochs(estimator: "AgraEstimator", num_rows: int) -> Any:
    """The given number, or for "auto" one that makes enough updates."""
    epochs, size = estimator.epochs, estimator.batch_size
    if not (isinstance(epochs, str) and epochs == "auto"):
        return epochs
    steps = -(-num_rows // size) if isinstance(size, Integral) and size > 0 else _UPDATES
    return max(_EPOCHS, -(-_UPDATES // max(1, steps)))


def make_optimizer(estimator: "AgraEstimator", model: nn.Module, rate: float) -> Any:
    """Adam with the weight decay in the gradient, as published."""
    fused = isinstance(model, LinearModel)
    decay = estimator.weight_decay
    return torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay, fused=fused)


def make_learner(
    estimator: "AgraEstimator", training: Training, rule: Rule | MultilabelRule, seed: int
) -> Learner:
    """Judged or plain, linear or not: of the estimator's model and optimizer."""
    model, optimizer = estimator.model_, estimator._optimizer
    if isinstance(model, LinearModel):
        data = LinearData(as_rows(training.features), training.labels, training.weights)
        judging = _judging(estimator, training, rule, seed) if estimator.judging else None
        return LinearLearner(model, data, optimizer, judging=judging)
    several = training.labels.ndim == 2
    train_set = TrainSet((training.features, training.labels))
    judge = None
    if estimator.judging:
        judge = Agra(
            model,
            train_set,
            criterion=estimator.criterion,
            weights=_own_weights(estimator.weights, training),
            alternative_label=getattr(rule, "alternative_label", None),
            threshold=rule.threshold,
            comparison_size=estimator.comparison_size,
            parameters=estimator.parameters,
            momentum=estimator.momentum,
            scores=True,
            multilabel=several,
            sample_weight=training.weights,
            seed=seed,
        )
    if judge is not None:
        return ModuleLearner(model, train_set, optimizer, judge=judge)
    update_loss = binary_cross_entropy if several else cross_entropy
    weights = training.weights
    return ModuleLearner(
        model, train_set, optimizer, update_loss=update_loss, sample_weight=weights
    )


def _judging(
    estimator: "AgraEstimator", training: Training, rule: Rule | MultilabelRule, seed: int
) -> Judging:
    several = training.labels.ndim == 2
    return Judging(
        criterion=find_criterion(estimator.criterion, multilabel=several),
        rule=rule,
        weights=_own_weights(estimator.weights, training),
        comparison_size=estimator.comparison_size,
        momentum=estimator.momentum,
        compare_bias=_counts_bias(estimator.parameters),
        seed=seed,
    )


def _own_weights(weights: Any, training: Training) -> Any:
    if isinstance(weights, str):
        return weights
    own = torch.as_tensor(np.asarray(weights))
    return own if training.rows is None or len(own) != training.total else own[training.rows]


def _counts_bias(parameters: Selection) -> bool:
    if parameters not in (None, "weight", "*"):
        raise ValueError(
            'Expected `parameters` of a linear model to be None, "weight" or "*", which counts '
            f"the bias too, got {parameters!r}."
        )
    return parameters == "*"


def run(loop: Loop, *, verbose: bool) -> None:
    """Run the loop, with a progress bar on standard error if wanted."""
    if not verbose:
        loop.run()
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("epoch 1", total=None)

        def show(where: Where) -> None:
            bar.update(
                task,
                description=f"epoch {where.epoch + 1}, loss {where.loss:.3f}",
                total=loop.epochs * where.steps,
                completed=where.epoch * where.steps + where.step,
            )

        loop.progress = show
        loop.run()


@torch.no_grad()
def outputs_of(model: nn.Module, features: Any) -> "np.ndarray[Any, Any]":
    """The model's outputs (N, K)."""
    parts: list[Any] = []
    for_each_part(model, features, parts.append)
    return np.concatenate(parts)


@torch.no_grad()
def for_each_part(model: nn.Module, features: Any, use: Callable[[Any], object]) -> None:
    """Pass the outputs on in parts: all rows times all classes may be too much to hold."""
    if isinstance(model, LinearModel):
        # a row's outputs must not depend on the rows beside it, as they do in dense products: there
        # the last digits of double precision hide it
        kind = torch.float32 if sparse.issparse(features) else torch.float64
        weight, bias = model.weight.to(kind), model.bias.double()
    else:
        model.eval()
        device = next(model.parameters()).device
    for start in range(0, max(1, features.shape[0]), _PREDICTED):
        part = features[start : start + _PREDICTED]
        if isinstance(model, LinearModel):
            use((as_rows(part, kind).times(weight).double() + bias).numpy())
        else:
            use(call(model, as_inputs(part).to(device)).double().cpu().numpy())

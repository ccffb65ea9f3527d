"""One step of AGRA, to be read beside Algorithms 1 and 2 of the paper.

gradient = batch_gradient(model, comparison_inputs, comparison_labels)    # lines 3 and 4
outputs, decisions = step.judge(model, Batch(inputs, labels), gradient)   # lines 5 to 16
loss = learn(outputs, decisions, update_loss)                             # line 17
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from agra.comparison import check_gradient
from agra.decisions import Candidates, Decisions, MultilabelRule, Rule
from agra.gradients import choose_engine
from agra.gradients.as_found import buffer_version, judging, may_share_forward
from agra.gradients.engine import Engine, Gradient, Products, Trace
from agra.inputs import Inputs, call, check_inputs, check_outputs
from agra.labels import check_labels, check_multilabel, sample_labelled
from agra.losses import Criterion, batch_loss, find_criterion
from agra.output_gradients import output_gradients


class Batch(NamedTuple):
    """A batch to be judged.

    Attributes:
        inputs: A tensor, or a tuple or dict of tensors.
        labels: The given labels.
        mask: (N, K), the classes that each sample may be relabelled to; None for all.
        weights: (N,), what each sample weighs in both losses; None for the same.
    """

    inputs: Inputs
    labels: Tensor
    mask: Tensor | None = None
    weights: Tensor | None = None


@dataclass(frozen=True)
class Update:
    """What one judged batch gave.

    Attributes:
        loss: Over what was kept or relabelled; 0 with zero gradients if nothing was.
        outputs: (N, K), as the update's forward pass gave them.
        decisions: The verdicts.
    """

    loss: Tensor
    outputs: Tensor
    decisions: Decisions

    @property
    def empty(self) -> bool:
        """Whether nothing is left to learn from."""
        return bool(self.decisions.dropped.all())


@dataclass(frozen=True)
class Step:
    """What stays the same from step to step: how batches are judged."""

    criterion: Criterion
    rule: Rule | MultilabelRule
    engine: Engine

    def judge(
        self,
        model: nn.Module,
        batch: Batch,
        comparison_gradient: Gradient,
        *,
        graph: bool = False,
    ) -> tuple[Tensor, Decisions]:
        """Judge a batch: the outputs on which it was judged, and the verdicts.

        Args:
            model: Any module with outputs (N, K); judged in eval mode.
            batch: The update batch.
            comparison_gradient: Of the comparison batch.
            graph: Whether the outputs should carry the model's graph, if the engine has it.
        """
        with judging(model):
            if isinstance(self.rule, MultilabelRule):
                if batch.mask is not None:
                    raise ValueError(
                        "Expected `mask` to be None with several labels per sample, got a tensor; "
                        "entries are kept or dropped, never relabelled."
                    )
                return self._judge_entries(self.rule, model, batch, comparison_gradient, graph)
            trace = self.engine.trace(model, batch.inputs, comparison_gradient, graph=graph)
            check_outputs(model, trace.outputs)
            check_labels(batch.labels, *trace.outputs.shape)
            candidates = self.rule.candidates(batch.labels, trace.outputs.shape[1], batch.mask)
            products = compare_candidates(
                self.criterion, self.rule, trace, candidates, weights=batch.weights
            )
            return trace.outputs, self.rule.decide(candidates, products)

    def update(
        self,
        model: nn.Module,
        batch: Batch,
        comparison_gradient: Gradient,
        *,
        update_loss: Criterion,
    ) -> Update:
        """Judge a batch and compute the update's loss.

        The forward pass of the judging is the update's own wherever train and eval mode agree.
        """
        graph = torch.is_grad_enabled() and may_share_forward(model)
        before = [buffer_version(buffer) for buffer in model.buffers()]
        outputs, decisions = self.judge(model, batch, comparison_gradient, graph=graph)
        moved = before != [buffer_version(buffer) for buffer in model.buffers()]
        if moved or not (graph and outputs.requires_grad):  # buffers move by the update alone
            outputs = call(model, batch.inputs)
        loss = learn(outputs, decisions, update_loss, batch.weights)
        return Update(loss, outputs, decisions)

    def _judge_entries(
        self,
        rule: MultilabelRule,
        model: nn.Module,
        batch: Batch,
        label_gradients: Gradient,
        graph: bool,
    ) -> tuple[Tensor, Decisions]:
        def derive(outputs: Tensor) -> Tensor:
            check_outputs(model, outputs)
            check_multilabel(batch.labels, tuple(outputs.shape))
            count = len(next(iter(label_gradients.values())))
            if count != outputs.shape[1]:
                raise ValueError(
                    "Expected `comparison_gradients` to hold one gradient per label "
                    f"({outputs.shape[1]}), got {count}."
                )
            return output_gradients(self.criterion, outputs, [batch.labels], batch.weights)[:, 0]

        outputs, products = self.engine.compare_labels(
            model, batch.inputs, label_gradients, derive, graph=graph, norms=rule.may_need_norms
        )
        products.check()
        return outputs, rule.decide(batch.labels, products)


def compare_candidates(
    criterion: Criterion,
    rule: Rule,
    trace: Trace,
    candidates: Candidates,
    *,
    weights: Tensor | None = None,
    given: Tensor | None = None,
) -> Products:
    """Lines 6 to 10 of Algorithm 1, for a whole batch that an engine has traced.

    Args:
        criterion: The comparison loss.
        rule: What may become of a sample.
        trace: Of the update batch.
        candidates: The labels tried.
        weights: (N,), what each sample weighs in the loss.
        given: (N, K), the output gradients under the given labels, if they are known already.
    """
    columns = candidates.columns()
    if given is None:
        derivatives = output_gradients(criterion, trace.outputs, columns, weights)
    elif len(columns) == 1:
        derivatives = given.unsqueeze(1)
    else:
        others = output_gradients(criterion, trace.outputs, columns[1:], weights)
        derivatives = torch.cat([given.unsqueeze(1), others], dim=1)
    products = trace.compare(derivatives, rule.norms_wanted(candidates))
    wanted = rule.norms_wanted(candidates, products.dots)
    if wanted is not None and not products.has_norms(wanted):
        products = trace.compare(derivatives, wanted)
    products.check()
    return products


def learn(
    outputs: Tensor,
    decisions: Decisions,
    update_loss: Criterion,
    weights: Tensor | None = None,
) -> Tensor:
    """The update loss over what was kept or relabelled; 0 with zero gradients if nothing was."""
    rows = sample_labelled(decisions.labels)
    if weights is not None:
        rows = rows & (weights > 0)
    if not bool(rows.any()):
        return outputs[:0].sum()
    return batch_loss(
        update_loss, outputs, decisions.labels, rows, weights=weights, argument="update_loss"
    )


def decide(
    model: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    comparison_gradient: Gradient,
    *,
    criterion: str | Criterion = "cross-entropy",
    rule: Rule | None = None,
    engine: str | Engine = "auto",
) -> Decisions:
    """Which samples of a batch to keep, drop or relabel. The model is left as found.

    Args:
        model: Any module with outputs (N, K); judged in eval mode.
        inputs: A tensor, or a tuple or dict of tensors.
        labels: Class indices, or rows of class probabilities; ``IGNORE_LABEL`` for none.
        comparison_gradient: From `batch_gradient` on the comparison batch. Its names say which
            parameters are compared.
        criterion: A name or any ``(outputs, labels) -> scalar``, as for the comparison gradient.
        rule: The threshold, and what may become of a sample; None drops at scores <= 0.
        engine: "auto", a name, or an engine that `choose_engine` found, which saves the search.

    Raises:
        ValueError: Inputs, labels or weights that cannot be judged, or an engine that refuses.

    Example:
        >>> from agra import batch_gradient
        >>> _ = torch.manual_seed(0)
        >>> model, inputs = nn.Linear(2, 2), torch.eye(2).repeat(4, 1)
        >>> gradient = batch_gradient(model, inputs, torch.tensor([0, 1] * 4))
        >>> given = torch.tensor([1, 1] + [0, 1] * 3)  # the first label is wrong
        >>> decide(model, inputs, given, gradient).dropped.nonzero().tolist()
        [[0]]
    """
    rule = Rule() if rule is None else rule
    found = _prepare(model, inputs, labels, comparison_gradient, rule, engine)
    step = Step(find_criterion(criterion), rule, found)
    return step.judge(model, Batch(inputs, labels), comparison_gradient)[1]


def decide_multilabel(
    model: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    comparison_gradients: Gradient,
    *,
    criterion: str | Criterion = "bce",
    rule: MultilabelRule | None = None,
    engine: str | Engine = "auto",
) -> Decisions:
    """Which entries of a batch's label matrix to keep or drop (Algorithm 2).

    Args:
        model: Any module with outputs (N, K); judged in eval mode.
        inputs: A tensor, or a tuple or dict of tensors.
        labels: 0/1 matrix (N, K); NaN or ``IGNORE_LABEL`` where unknown.
        comparison_gradients: From `label_gradients` on the comparison batch, one per label.
        criterion: A name or any ``(outputs, labels) -> scalar``, as for the comparison gradients.
        rule: The threshold; None drops at scores <= 0.
        engine: "auto", a name, or an engine that `choose_engine` found.

    Raises:
        ValueError: Inputs, labels or weights that cannot be judged, or an engine that refuses.

    Example:
        >>> from agra import label_gradients
        >>> model, inputs, labels = nn.Linear(2, 2), torch.eye(2), torch.eye(2)
        >>> gradients = label_gradients(model, inputs, labels)
        >>> decide_multilabel(model, inputs, labels, gradients).kept.tolist()
        [[True, True], [True, True]]
    """
    rule = MultilabelRule() if rule is None else rule
    found = _prepare(model, inputs, labels, comparison_gradients, rule, engine)
    step = Step(find_criterion(criterion, multilabel=True), rule, found)
    return step.judge(model, Batch(inputs, labels), comparison_gradients)[1]


def _prepare(
    model: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    gradient: Gradient,
    rule: Rule | MultilabelRule,
    engine: str | Engine,
) -> Engine:
    check_inputs(model, inputs, labels)
    check_gradient(model, gradient, several=isinstance(rule, MultilabelRule))
    if isinstance(engine, Engine):
        return engine
    return choose_engine(engine, model, inputs, list(gradient), norms=rule.may_need_norms)

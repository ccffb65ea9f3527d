"""Judging for the linear learner: the lines of Algorithms 1 and 2 around its products with rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from agra.comparison import RunningGradient
from agra.decisions import Decisions, MultilabelRule, Rule
from agra.gradients.engine import Gradient, squared_norm
from agra.gradients.linear import LinearTrace
from agra.labels import IGNORE_LABEL, labelled, sample_labelled
from agra.ledger import Ledger, given_probabilities
from agra.linear_model import LinearData, LinearModel
from agra.losses import Criterion, cross_entropy
from agra.output_gradients import loss_and_gradient, losses_and_gradients
from agra.sampling import RowSampler, Weights
from agra.step import judge_trace

_TOGETHER = 64  # updates that are written into the ledger at a time


@dataclass(frozen=True)
class Judging:
    """How a linear learner judges.

    Attributes:
        criterion: The comparison loss.
        rule: What may become of a sample.
        weights: How comparison batches are drawn.
        comparison_size: Of the comparison batch; None for the largest update batch so far.
        momentum: Of the comparison gradient over steps; 0 is the paper.
        compare_bias: Whether the bias counts in the similarity; the paper leaves it out.
        seed: Of the comparison batches.
    """

    criterion: Criterion = cross_entropy
    rule: Rule | MultilabelRule = field(default_factory=Rule)
    weights: Weights = "uniform"
    comparison_size: int | None = None
    momentum: float = 0.0
    compare_bias: bool = False
    seed: int = 0


class LinearJudge:
    """Judges update batches of a linear model, each against a fresh comparison batch."""

    def __init__(self, model: LinearModel, data: LinearData, judging: Judging) -> None:
        self.model, self.data, self.judging = model, data, judging
        drawable = data.labels
        if data.weights is not None:  # what weighs nothing has no say
            nothing = (data.weights == 0).view(-1, *[1] * (drawable.ndim - 1))
            drawable = drawable.masked_fill(nothing, IGNORE_LABEL)
        self.sampler = RowSampler(
            drawable, len(data.rows), weights=judging.weights, seed=judging.seed
        )
        self._size = judging.comparison_size
        if self._size is not None:
            self._size = self.sampler.check_size(self._size)
        self._several = data.labels.ndim == 2
        self._complete = bool(labelled(data.labels).all())
        self._ledger = Ledger(len(data.rows), data.labels.shape[1] if self._several else None)
        self._running = RunningGradient(judging.momentum)
        self._lengths = data.rows.squared_norms() + int(judging.compare_bias)
        self._largest, self._counted = 0, 0
        self._waiting: list[tuple[_Judged, Decisions]] = []

    def decide(self, rows: Tensor) -> tuple[LinearData, Tensor, Tensor]:
        """An update batch, its outputs, and what to learn it as."""
        count = len(rows)
        # both batches are fetched, and pass the model, together
        both = self.data.take(torch.cat([rows, self._draw(count)]))
        all_outputs = self.model(both.rows)
        given, compared = self._output_gradients(all_outputs, both, count)
        batch, comparison = both.split(count)
        gradient = {"weight": comparison.rows.pull_back(compared)}
        if self.judging.compare_bias:
            gradient["bias"] = compared.sum(dim=0)
        gradient = self._running.add(gradient)
        directions = batch.rows.times(gradient["weight"])
        if self.judging.compare_bias:
            directions += gradient["bias"]
        outputs, length = all_outputs[:count], squared_norm(gradient)
        judged = _Judged(rows, batch.labels, outputs, given, directions, length)
        decisions = self._rule_on(judged, batch, gradient)
        self._waiting.append((judged, decisions))
        if len(self._waiting) == _TOGETHER:
            self.ledger()
        return batch, outputs, decisions.labels

    def _draw(self, count: int) -> Tensor:
        self._largest = max(self._largest, count)
        size = self._size or min(self._largest, self.sampler.num_rows)
        return self.sampler.draw(size)[0]

    def _output_gradients(
        self, outputs: Tensor, both: LinearData, count: int
    ) -> tuple[Tensor, Tensor]:
        """Those of the update batch under its given labels, and of the comparison batch."""
        criterion, labels, weights = self.judging.criterion, both.labels, both.weights
        if len(outputs) == 2 * count:
            pair = None if weights is None else weights.view(2, count)
            columns = labels.view(2, count, *labels.shape[1:])
            found = losses_and_gradients(
                criterion, outputs.view(2, count, -1), columns, pair, complete=self._complete
            )[1]
            return found[0], found[1]
        parts = []
        for own in (slice(count), slice(count, None)):
            part = None if weights is None else weights[own]
            parts.append(loss_and_gradient(criterion, outputs[own], labels[own], part)[1])
        return parts[0], parts[1]

    def _rule_on(self, judged: "_Judged", batch: LinearData, gradient: Gradient) -> Decisions:
        rule, criterion = self.judging.rule, self.judging.criterion
        trace = judged.trace(self._lengths if self._norms_at_once else None)
        if isinstance(rule, MultilabelRule):
            products = trace.compare_labels(judged.given, _squared_columns(gradient))
            products.check()
            return rule.decide(batch.labels, products)
        mask, weights, given = batch.mask, batch.weights, judged.given
        return judge_trace(
            criterion, rule, trace, batch.labels, mask=mask, weights=weights, given=given
        )

    @property
    def _norms_at_once(self) -> bool:
        return self._several or self.judging.rule.may_need_norms

    def ledger(self) -> Ledger:
        """With everything written down that was waiting."""
        if self._waiting:
            parts, verdicts = zip(*self._waiting, strict=True)
            self._waiting = []
            judged, decisions = _Judged.joined(parts), Decisions.joined(verdicts)
            if not self._norms_at_once:  # scores for all at once, as no verdict waits for them
                products = judged.trace(self._lengths).compare(judged.given.unsqueeze(1))
                scores = products.cosine(self.judging.rule.eps)[:, 0]
                known = sample_labelled(judged.labels)
                decisions = replace(decisions, scores=scores.where(known, torch.nan))
            self._ledger.record(
                judged.rows,
                decisions,
                given_probabilities(judged.outputs, judged.labels, several=self._several),
                sizes=[len(part.rows) for part in parts],
            )
        return self._ledger

    def counts(self) -> tuple[int, int, int]:
        """Kept, dropped and relabelled since the last call."""
        fresh = self.ledger().updates[self._counted :]
        self._counted += len(fresh)
        kept, dropped, relabelled = zip(*fresh, strict=True) if fresh else ((), (), ())
        return sum(kept), sum(dropped), sum(relabelled)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {
            "sampler": self.sampler.state_dict(),
            "running": self._running.state_dict(),
            "ledger": self.ledger().state_dict(),
            "largest": self._largest,
            "counted": self._counted,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.sampler.load_state_dict(state["sampler"])
        self._running.load_state_dict(state["running"])
        self._waiting = []
        self._ledger.load_state_dict(state["ledger"])
        self._largest, self._counted = state["largest"], state["counted"]


class _Judged(NamedTuple):
    """What was known of an update batch when it was judged."""

    rows: Tensor
    labels: Tensor
    outputs: Tensor
    given: Tensor  # the output gradients under the given labels
    directions: Tensor
    length: Tensor  # the squared norm of the comparison gradient, or one per sample

    @classmethod
    def joined(cls, parts: "tuple[_Judged, ...]") -> "_Judged":
        return cls(
            torch.cat([part.rows for part in parts]),
            torch.cat([part.labels for part in parts]),
            torch.cat([part.outputs for part in parts]),
            torch.cat([part.given for part in parts]),
            torch.cat([part.directions for part in parts]),
            torch.cat([part.length.expand(len(part.rows), 1) for part in parts]),
        )

    def trace(self, lengths: Tensor | None) -> LinearTrace:
        """With norms if the squared norms of all rows are given."""
        own = None if lengths is None else lengths[self.rows]
        return LinearTrace(self.outputs, self.directions, own, self.length)


def _squared_columns(gradient: Gradient) -> Tensor:
    columns = [part.view(-1, part.shape[-1]).square().sum(dim=0) for part in gradient.values()]
    return torch.stack(columns).sum(dim=0)

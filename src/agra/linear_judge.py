"""Judging for the linear learner: the lines of Algorithms 1 and 2 around its products with rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
from agra.step import compare_candidates

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
        self._waiting: list[_Judged] = []

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
        outputs = all_outputs[:count]
        length = _squared_columns(gradient) if self._several else squared_norm(gradient)
        trace = LinearTrace(
            outputs, directions, self._lengths[rows] if self._norms_at_once else None, length
        )
        labels = self._choose(trace, batch, given)
        # the ledger takes more time than all of this, batch by batch
        self._waiting.append(
            _Judged(rows, batch.labels, labels, outputs, given, directions, length)
        )
        if len(self._waiting) == _TOGETHER:
            self.ledger()
        return batch, outputs, labels

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

    def _choose(self, trace: LinearTrace, batch: LinearData, given: Tensor) -> Tensor:
        rule = self.judging.rule
        if isinstance(rule, MultilabelRule):
            products = trace.compare_labels(given)
            products.check()
            return rule.choose(batch.labels, products)
        candidates = rule.candidates(batch.labels, given.shape[1], batch.mask)
        products = compare_candidates(
            self.judging.criterion, rule, trace, candidates, weights=batch.weights, given=given
        )
        return rule.choose(candidates, products)

    @property
    def _norms_at_once(self) -> bool:
        return self.judging.rule.may_need_norms

    def ledger(self) -> Ledger:
        """With everything written down that was waiting."""
        if self._waiting:
            sizes = [part.rows.shape[0] for part in self._waiting]
            judged, self._waiting = _Judged.joined(self._waiting, sizes), []
            trace = LinearTrace(
                judged.outputs, judged.directions, self._lengths[judged.rows], judged.length
            )
            # scores are for the ledger alone, as verdicts may do without
            if self._several:
                scores = trace.compare_labels(judged.given).cosine(self.judging.rule.eps)
            else:
                products = trace.compare(judged.given.unsqueeze(1))
                scores = products.cosine(self.judging.rule.eps)[:, 0]
            known = labelled(judged.labels) if self._several else sample_labelled(judged.labels)
            self._ledger.record(
                judged.rows,
                Decisions.of(judged.labels, judged.learned, scores.where(known, torch.nan)),
                given_probabilities(judged.outputs, judged.labels, several=self._several),
                sizes=sizes,
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
    learned: Tensor  # the labels that the rule made of them
    outputs: Tensor
    given: Tensor  # the output gradients under the given labels
    directions: Tensor
    length: Tensor  # the squared norm of the comparison gradient, for several labels of each

    @classmethod
    def joined(cls, parts: "list[_Judged]", sizes: list[int]) -> "_Judged":
        *columns, lengths = zip(*parts, strict=True)
        repeated = torch.stack(lengths).repeat_interleave(torch.tensor(sizes), dim=0)
        length = repeated if repeated.ndim == 2 else repeated.unsqueeze(1)
        return cls._make([*map(torch.cat, columns), length])


def _squared_columns(gradient: Gradient) -> Tensor:
    columns = [part.view(-1, part.shape[-1]).square().sum(dim=0) for part in gradient.values()]
    return torch.stack(columns).sum(dim=0)

"""CORES²: the regularised loss and the sample sieve (Cheng et al. 2021), on outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from agra.baselines.linear import shares_of
from agra.decisions import Decisions
from agra.labels import IGNORE_LABEL, class_rows
from agra.ledger import DROPPED, Ledger, given_probabilities
from agra.linear_judge import Judging, LinearJudge
from agra.linear_learner import LinearLearner
from agra.linear_model import LinearData, LinearModel
from agra.losses import cross_entropy

_TOGETHER = 64  # updates that are written into the ledger at a time

# of a hundred epochs, as in the code published for CIFAR: none of beta in the first ten, all of it
# after thirty more, and no sieve in the first thirty-one
_EPOCHS, _FREE, _RISING, _UNSIEVED = 100, 10, 29, 30


def regularised_labels(labels: Tensor, prior: Tensor, beta: float) -> Tensor:
    """The rows whose cross-entropy is the regularised loss: (N, K).

    Cross-entropy is linear in its labels, so that CE(y) - beta * E_prior[CE] is the cross-entropy
    of the signed row e_y - beta * prior.

    Args:
        labels: Class indices (N,).
        prior: (K,), the share of each class among the given labels.
        beta: How strongly confidence is asked for.

    Example:
        >>> regularised_labels(torch.tensor([1]), torch.tensor([0.5, 0.5]), 0.5).tolist()
        [[-0.25, 0.75]]
    """
    return class_rows(labels, len(prior), prior.dtype) - beta * prior


def passes_sieve(outputs: Tensor, labels: Tensor, threshold: float = 0.0) -> Tensor:
    """Which samples stay: (N,) booleans.

    Those whose cross-entropy exceeds the mean over all labels by no more than the threshold. The
    normaliser of the softmax is in both, so that the outputs alone tell the difference.

    Args:
        outputs: (N, K).
        labels: Class indices (N,).
        threshold: 0 in the paper.

    Example:
        >>> passes_sieve(torch.tensor([[3.0, 1.0], [3.0, 1.0]]), torch.tensor([0, 1])).tolist()
        [True, False]
    """
    own = outputs.gather(1, labels.long().unsqueeze(1))
    excess = (outputs - own).mean(dim=1)
    return ~(excess > threshold)  # NaN stays, for the loop to refuse it


@dataclass(frozen=True)
class Sieving:
    """How a sieve works.

    Attributes:
        beta: At its height.
        threshold: Of `passes_sieve`.
        schedule: "constant" or "published".
        epochs: Of the whole run, over which the published schedule is stretched.
    """

    beta: float
    threshold: float
    schedule: Literal["constant", "published"]
    epochs: int

    def at(self, epoch: int) -> tuple[float, bool]:
        """Beta, and whether the sieve is in use, in an epoch counted from 0."""
        if self.schedule == "constant":
            return self.beta, True
        place = _EPOCHS * epoch / self.epochs
        risen = min(1.0, max(0.0, (place - _FREE) / _RISING))
        return self.beta * risen, place > _UNSIEVED


class Sieve(LinearJudge):
    """Judges update batches of a linear model by the model's own confidence.

    Instead of a comparison batch it needs the prior of the labels: those given, or with the
    published schedule those that the sieve kept in the epoch before.
    """

    def __init__(self, model: LinearModel, data: LinearData, sieving: Sieving) -> None:
        super().__init__(model, data, Judging())  # for its ledger and counts; it draws nothing
        self.sieving = sieving
        self._num_classes = model.bias.shape[0]
        self._given = shares_of(data.labels, self._num_classes, data.weights)
        self._epoch = -1  # that the following belong to
        self._beta, self._in_use, self._prior = 0.0, False, self._given
        self._seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    def decide(self, rows: Tensor) -> tuple[LinearData, Tensor, Tensor]:
        """An update batch, its outputs, and signed rows to learn it as, NaN where sieved out."""
        self._enter_epoch()
        batch = self.data.take(rows)
        outputs = self.model(batch.rows)
        kept = torch.ones(len(rows), dtype=torch.bool)
        if self._in_use:
            kept = passes_sieve(outputs, batch.labels, self.sieving.threshold)
        self._seen.append((rows, batch.labels, outputs, kept))
        if len(self._seen) == _TOGETHER:
            self.ledger()
        labels = regularised_labels(batch.labels, self._prior, self._beta).to(outputs.dtype)
        return batch, outputs, labels.masked_fill(~kept.unsqueeze(1), torch.nan)

    def _enter_epoch(self) -> None:
        """Told by the ledger where the run stands, a resumed one too."""
        epoch = max(0, len(self._ledger.epochs) - 1)
        if epoch == self._epoch:
            return
        self._epoch = epoch
        self._beta, self._in_use = self.sieving.at(epoch)
        if self.sieving.schedule == "published" and epoch > 0:
            stayed = self.ledger().epochs[epoch - 1]["verdict"] != DROPPED
            labels = self.data.labels.masked_fill(~stayed, IGNORE_LABEL)
            none = not bool((labels >= 0).any())
            own = shares_of(labels, self._num_classes, self.data.weights)
            self._prior = self._given if none else own

    def ledger(self) -> Ledger:
        """With everything written down that was waiting."""
        if self._seen:
            sizes = [len(part[0]) for part in self._seen]
            rows, labels, outputs, kept = map(torch.cat, zip(*self._seen, strict=True))
            self._seen = []
            learned = labels.masked_fill(~kept, IGNORE_LABEL)
            unscored = torch.full(labels.shape, torch.nan)
            self._ledger.record(
                rows,
                Decisions.of(labels, learned, unscored),
                given_probabilities(outputs, labels, several=False),
                sizes=sizes,
            )
        return self._ledger

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        self._seen, self._epoch = [], -1


class SieveLearner(LinearLearner):
    """Trains a linear model on what passes the sieve, with the regularised loss."""

    def __init__(self, plain: LinearLearner, sieving: Sieving) -> None:
        super().__init__(plain.model, plain.data, plain.optimizer)
        self._judge = Sieve(plain.model, plain.data, sieving)
        self._update_loss = cross_entropy  # of signed rows, which are no 0/1 matrix either

"""Who learns from a batch: any module, judged or plain."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from agra.inputs import Inputs, call, transform
from agra.judge import Agra
from agra.labels import check_labels, is_distribution, sample_labelled
from agra.ledger import Ledger
from agra.losses import (
    Criterion,
    batch_loss,
    binary_cross_entropy,
    cross_entropy,
    find_criterion,
)
from agra.train_set import TrainSet

Counts = tuple[int, int, int]  # kept, dropped, relabelled


class Learner(ABC):
    """What a loop drives, update by update.

    Attributes:
        model: What it trains.
        num_rows: The size of the training set.
    """

    model: nn.Module
    num_rows: int

    @property
    def ledger(self) -> Ledger | None:
        """What happened to every sample; None without a judge."""
        return None

    @abstractmethod
    def start_epoch(self) -> None:
        """Called before the first update of every epoch."""

    @abstractmethod
    def learn(self, rows: Tensor) -> float | None:
        """One update from those rows of the training set: its loss, or None if nothing was left."""

    @abstractmethod
    def counts(self) -> Counts:
        """Samples (or entries) kept, dropped and relabelled since the last call."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


class ModuleLearner(Learner):
    """Trains any module with any optimizer.

    Args:
        model: Any module with outputs (N, K).
        train_set: ``(inputs, labels)``, a map-style Dataset or a `TrainSet`.
        optimizer: Of the model's parameters.
        judge: Judges every batch; None trains on all labels as given.
        update_loss: Without a judge, the loss to learn with, a name or a callable; None for
            cross-entropy, or the masked BCE for a 0/1 matrix of labels. A judge has its own.
        sample_weight: Without a judge, what each sample weighs in it; None for the same.

    Raises:
        ValueError: A judge of another model, a loss beside a judge, or labels that cannot be
            learned from.

    Example:
        >>> model, rows = nn.Linear(2, 2), (torch.eye(2), [0, 1])
        >>> learner = ModuleLearner(model, rows, torch.optim.SGD(model.parameters(), lr=0.1))
        >>> learner.learn(torch.tensor([0, 1])) > 0
        True
    """

    def __init__(
        self,
        model: nn.Module,
        train_set: Any,
        optimizer: torch.optim.Optimizer,
        *,
        judge: Agra | None = None,
        update_loss: str | Criterion | None = None,
        sample_weight: Tensor | None = None,
    ) -> None:
        if judge is not None and judge.model is not model:
            raise ValueError("Expected `judge` to judge `model`, got one of another model.")
        if judge is not None and not (update_loss is None and sample_weight is None):
            raise ValueError(
                "Expected `update_loss` and `sample_weight` to be None beside a judge, which has "
                "its own, got others; pass them to agra.Agra."
            )
        self.model, self.optimizer, self.judge = model, optimizer, judge
        self.train_set = train_set if isinstance(train_set, TrainSet) else TrainSet(train_set)
        self.num_rows = len(self.train_set)
        labels = self.train_set.labels
        several = labels is not None and labels.ndim == 2 and not is_distribution(labels)
        if labels is not None and not several and update_loss is None:
            check_labels(labels, self.num_rows, None)
        default = binary_cross_entropy if several else cross_entropy
        self.update_loss = find_criterion(
            update_loss or default, multilabel=several, argument="update_loss"
        )
        self.sample_weight = sample_weight
        self._counts: Counts = (0, 0, 0)

    @property
    def ledger(self) -> Ledger | None:
        return None if self.judge is None else self.judge.ledger

    def start_epoch(self) -> None:
        if self.ledger is not None:
            self.ledger.start_epoch()

    def learn(self, rows: Tensor) -> float | None:
        self.model.train()
        inputs, labels = self.train_set.rows(rows)
        device = next(self.model.parameters()).device
        inputs, labels = transform(inputs, lambda part: part.to(device)), labels.to(device)
        if self.judge is None:
            return self._plain_step(rows, inputs, labels)
        found = self.judge.step(self.optimizer, inputs, labels, rows)
        verdicts = found.decisions
        self._count(verdicts.kept, verdicts.dropped, verdicts.relabelled)
        return None if found.empty else float(found.loss.detach())

    def _plain_step(self, rows: Tensor, inputs: Inputs, labels: Tensor) -> float | None:
        known = sample_labelled(labels)
        self._count(known)
        if not bool(known.any()):
            return None
        weights = None if self.sample_weight is None else self.sample_weight[rows].to(labels.device)
        outputs = call(self.model, inputs)
        loss = batch_loss(self.update_loss, outputs, labels, known, weights=weights)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def _count(self, *verdicts: Tensor) -> None:
        found = [int(part.sum()) for part in verdicts] + [0, 0]
        kept, dropped, relabelled = self._counts
        self._counts = (kept + found[0], dropped + found[1], relabelled + found[2])

    def counts(self) -> Counts:
        found, self._counts = self._counts, (0, 0, 0)
        return found

    def state_dict(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer.state_dict(),
            "judge": None if self.judge is None else self.judge.state_dict(),
            "counts": self._counts,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        if self.judge is not None:
            self.judge.load_state_dict(state["judge"])
        kept, dropped, relabelled = state["counts"]
        self._counts = (kept, dropped, relabelled)

"""A training loop, judged or plain: epochs, validation, best state, early stop, resume."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from agra.inputs import call, transform
from agra.judge import Agra
from agra.labels import sample_labelled
from agra.losses import Criterion, batch_loss, cross_entropy
from agra.train_set import TrainSet


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a step.

    Attributes:
        epoch: Counted from 0.
        step: Steps done in this epoch.
        steps: Steps in an epoch.
        loss: Of this step's update; NaN if the batch was dropped whole.
    """

    epoch: int
    step: int
    steps: int
    loss: float


@dataclass(frozen=True)
class Epoch:
    """What an epoch gave.

    Attributes:
        epoch: Counted from 0.
        loss: Mean over its updates.
        score: Of the validation after it; None without one.
        kept: Samples (or entries) kept, or trained on when there is no judge.
        dropped: Samples (or entries) dropped.
        relabelled: Samples relabelled.
        seconds: Wall time, validation included.
    """

    epoch: int
    loss: float
    score: float | None
    kept: int
    dropped: int
    relabelled: int
    seconds: float


class Loop:
    """Trains a model on a training set, epoch by epoch.

    Args:
        model: Any module with outputs (N, K).
        train_set: ``(inputs, labels)``, a map-style Dataset or a `TrainSet`.
        optimizer: Of the model's parameters.
        judge: Judges every batch; None trains on all labels as given.
        update_loss: Without a judge, the loss to learn with.
        epochs: How many at most.
        batch_size: Samples per update.
        validate: From the model, in eval mode, to a score, higher is better. The weights of the
            best epoch stay in the model at the end, on ties those of the later epoch.
        patience: Stop after this many epochs without a new best; None never stops early.
        progress: Called after every step.
        seed: Of the order of the samples.

    Attributes:
        history: One `Epoch` after the other.

    Raises:
        ValueError: Numbers out of range, or ``patience`` without ``validate``.

    Example:
        >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
        >>> train_set = TrainSet((x, (x[:, 0] > 0).long()))
        >>> model = nn.Linear(2, 2)
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        >>> loop = Loop(model, train_set, optimizer, judge=Agra(model, train_set), epochs=3)
        >>> len(loop.run())
        3
    """

    def __init__(  # noqa: PLR0913  # every choice is a keyword of its own
        self,
        model: nn.Module,
        train_set: Any,
        optimizer: torch.optim.Optimizer,
        *,
        judge: Agra | None = None,
        update_loss: Criterion = cross_entropy,
        epochs: int = 10,
        batch_size: int = 32,
        validate: Callable[[nn.Module], float] | None = None,
        patience: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        seed: int = 0,
    ) -> None:
        for name, value in (("epochs", epochs), ("batch_size", batch_size), ("patience", patience)):
            if value is not None and value < 1:
                raise ValueError(f"Expected `{name}` to be at least 1, got {value}.")
        if patience is not None and validate is None:
            raise ValueError(f"Expected `validate` with patience={patience}, got None.")
        self.model, self.optimizer, self.judge = model, optimizer, judge
        self.train_set = train_set if isinstance(train_set, TrainSet) else TrainSet(train_set)
        self.update_loss, self.epochs, self.batch_size = update_loss, epochs, batch_size
        self.validate, self.patience, self.progress = validate, patience, progress
        self.history: list[Epoch] = []
        self._order = torch.Generator().manual_seed(seed)
        self._epoch_start = self._order.get_state()
        self._step = 0
        self._running = _Running()
        self._best: tuple[int, dict[str, Tensor]] | None = None

    def run(self) -> list[Epoch]:
        """Train to the end, from wherever the run stands; the history so far.

        An interrupt leaves the loop between two steps; calling `run` again goes on from there.

        Raises:
            ValueError: The loss became NaN or infinite.
        """
        while len(self.history) < self.epochs and not self._out_of_patience():
            started = time.perf_counter() - self._running.seconds
            for rows in self._batches():
                self._learn(rows)
                self._step += 1
                self._running.seconds = time.perf_counter() - started
                if self.progress is not None:
                    self.progress(self._where())
            self._finish_epoch(started)
        if self._best is not None:
            self.model.load_state_dict(self._best[1])
        return self.history

    def _batches(self) -> Iterator[Tensor]:
        if self._step == 0:
            self._epoch_start = self._order.get_state()
            if self.judge is not None and self.judge.ledger is not None:
                self.judge.ledger.start_epoch()
        self._order.set_state(self._epoch_start)
        order = torch.randperm(len(self.train_set), generator=self._order)
        yield from order.split(self.batch_size)[self._step :]

    def _learn(self, rows: Tensor) -> None:
        self.model.train()
        inputs, labels = self.train_set.rows(rows)
        device = next(self.model.parameters()).device
        inputs, labels = transform(inputs, lambda part: part.to(device)), labels.to(device)
        if self.judge is None:
            loss = self._plain_step(inputs, labels)
            counts = (int(sample_labelled(labels).sum()), 0, 0)
        else:
            found = self.judge.step(self.optimizer, inputs, labels, rows)
            loss = math.nan if found.empty else float(found.loss.detach())
            verdicts = found.decisions
            counts = (
                int(verdicts.kept.sum()),
                int(verdicts.dropped.sum()),
                int(verdicts.relabelled.sum()),
            )
        self._running.add(loss, counts)
        if math.isinf(loss) or (math.isnan(loss) and counts[0] + counts[2] > 0):
            raise ValueError(
                f"Expected a finite loss, got {loss} in epoch {len(self.history)}, step "
                f"{self._step}; lower the learning rate."
            )

    def _plain_step(self, inputs: Any, labels: Tensor) -> float:
        known = sample_labelled(labels)
        if not bool(known.any()):
            return math.nan
        loss = batch_loss(self.update_loss, call(self.model, inputs), labels, known)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def _finish_epoch(self, started: float) -> None:
        score = self._validate()
        running = self._running
        epoch = len(self.history)
        mean = running.loss / running.updates if running.updates else math.nan
        kept, dropped, relabelled = running.counts
        seconds = time.perf_counter() - started
        self.history.append(Epoch(epoch, mean, score, kept, dropped, relabelled, seconds))
        if score is not None and (self._best is None or score >= self._best_score()):
            state = {name: part.clone() for name, part in self.model.state_dict().items()}
            self._best = (epoch, state)
        self._step, self._running = 0, _Running()

    def _validate(self) -> float | None:
        if self.validate is None:
            return None
        self.model.eval()
        with torch.no_grad():
            return float(self.validate(self.model))

    @property
    def best_epoch(self) -> int | None:
        """The epoch whose weights are kept; None without validation."""
        return None if self._best is None else self._best[0]

    def _best_score(self) -> float:
        assert self._best is not None
        score = self.history[self._best[0]].score
        assert score is not None
        return score

    def _out_of_patience(self) -> bool:
        if self.patience is None or self._best is None:
            return False
        return len(self.history) - 1 - self._best[0] >= self.patience

    def _where(self) -> Progress:
        steps = -(-len(self.train_set) // self.batch_size)
        return Progress(len(self.history), self._step, steps, self._running.last)

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs to go on bit for bit, between any two steps."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "judge": None if self.judge is None else self.judge.state_dict(),
            "history": [asdict(epoch) for epoch in self.history],
            "epoch_start": self._epoch_start,
            "order": self._order.get_state(),
            "step": self._step,
            "running": asdict(self._running),
            "best": self._best,
            "random_state": torch.get_rng_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, with torch's global random state as it was then."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.judge is not None:
            self.judge.load_state_dict(state["judge"])
        self.history = [Epoch(**epoch) for epoch in state["history"]]
        self._epoch_start = state["epoch_start"]
        self._order.set_state(state["order"])
        self._step = state["step"]
        self._running = _Running(**state["running"])
        self._best = state["best"]
        torch.set_rng_state(state["random_state"])


@dataclass
class _Running:
    """Sums over the epoch so far."""

    loss: float = 0.0
    last: float = math.nan
    updates: int = 0
    counts: tuple[int, int, int] = (0, 0, 0)
    seconds: float = 0.0

    def add(self, loss: float, counts: tuple[int, int, int]) -> None:
        self.last = loss
        if not math.isnan(loss):
            self.loss += loss
            self.updates += 1
        kept, dropped, relabelled = self.counts
        self.counts = (kept + counts[0], dropped + counts[1], relabelled + counts[2])

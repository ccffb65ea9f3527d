"""A training loop: epochs, validation, best state, early stop, resume."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from agra.learner import Learner


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
    """Trains a model epoch by epoch.

    Args:
        learner: What learns, and from what: a `ModuleLearner` or a `LinearLearner`.
        epochs: How many at most.
        batch_size: Samples per update.
        validate: From the model, in eval mode, to a score, higher is better.
        keep_best: Whether, with ``validate``, the weights of the best epoch stay in the model at
            the end, on ties those of the later one; False leaves those of the last.
        patience: Stop after this many epochs without a new best; None never stops early.
        progress: Called after every step.
        seed: Of the order of the samples.

    Attributes:
        history: One `Epoch` after the other.

    Raises:
        TypeError: Numbers that are not whole.
        ValueError: Numbers out of range, or ``patience`` without ``validate``.

    Example:
        >>> from agra import Agra, ModuleLearner
        >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
        >>> train_set, model = (x, (x[:, 0] > 0).long()), nn.Linear(2, 2)
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        >>> learner = ModuleLearner(model, train_set, optimizer, judge=Agra(model, train_set))
        >>> len(Loop(learner, epochs=3).run())
        3
    """

    def __init__(
        self,
        learner: Learner,
        *,
        epochs: int = 10,
        batch_size: int = 32,
        validate: Callable[[nn.Module], float] | None = None,
        keep_best: bool = True,
        patience: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        seed: int = 0,
    ) -> None:
        for name, value in (("epochs", epochs), ("batch_size", batch_size), ("patience", patience)):
            if value is not None and not isinstance(value, Integral):
                raise TypeError(f"Expected `{name}` to be a whole number, got {value!r}.")
            if value is not None and value < 1:
                raise ValueError(f"Expected `{name}` to be at least 1, got {value}.")
        if patience is not None and validate is None:
            raise ValueError(f"Expected `validate` with patience={patience}, got None.")
        self.learner, self.epochs, self.batch_size = learner, int(epochs), int(batch_size)
        self.validate, self.keep_best = validate, keep_best
        self.patience, self.progress = patience, progress
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
                self._note(self.learner.learn(rows))
                self._step += 1
                self._running.seconds = time.perf_counter() - started
                if self.progress is not None:
                    self.progress(self._where())
            self._finish_epoch(started)
        if self._best is not None and self.keep_best:
            self.learner.model.load_state_dict(self._best[1])
        return self.history

    def _batches(self) -> Iterator[Tensor]:
        if self._step == 0:
            self._epoch_start = self._order.get_state()
            self.learner.start_epoch()
        self._order.set_state(self._epoch_start)
        order = torch.randperm(self.learner.num_rows, generator=self._order)
        yield from order.split(self.batch_size)[self._step :]

    def _note(self, loss: float | None) -> None:
        if loss is not None and not math.isfinite(loss):
            raise ValueError(
                f"Expected a finite loss, got {loss} in epoch {len(self.history)}, step "
                f"{self._step}; lower the learning rate."
            )
        running = self._running
        running.last = math.nan if loss is None else loss
        if loss is not None:
            running.loss += loss
            running.updates += 1

    def _finish_epoch(self, started: float) -> None:
        running, epoch = self._running, len(self.history)
        score = self._validate()
        mean = running.loss / running.updates if running.updates else math.nan
        seconds = time.perf_counter() - started
        self.history.append(Epoch(epoch, mean, score, *self.learner.counts(), seconds))
        if score is not None and (self._best is None or score >= self._best_score()):
            state = self.learner.model.state_dict()
            self._best = (epoch, {name: part.clone() for name, part in state.items()})
        self._step, self._running = 0, _Running()

    def _validate(self) -> float | None:
        if self.validate is None:
            return None
        self.learner.model.eval()
        with torch.no_grad():
            return float(self.validate(self.learner.model))

    @property
    def best_epoch(self) -> int | None:
        """The epoch of the best score; None without validation."""
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
        steps = -(-self.learner.num_rows // self.batch_size)
        return Progress(len(self.history), self._step, steps, self._running.last)

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs to go on bit for bit, between any two steps."""
        return {
            "model": self.learner.model.state_dict(),
            "learner": self.learner.state_dict(),
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
        self.learner.model.load_state_dict(state["model"])
        self.learner.load_state_dict(state["learner"])
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
    seconds: float = 0.0

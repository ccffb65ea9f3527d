"""Comparison batches: drawn from the training set, without replacement, by a generator of its own.

A draw costs the same for ten thousand rows as for ten million: rows are guessed and repetitions
guessed again, which gives exactly the distribution of drawing one by one without replacement.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor

from agra.inputs import Inputs
from agra.labels import is_distribution, is_soft, sample_labelled
from agra.names import check_name, warn_caller
from agra.train_set import TrainSet

Weights = Literal["uniform", "inverse-frequency"] | Tensor

_ROUNDS = 8  # of guessing, before the rest is drawn by sorting
_BLOCK = 4096  # rows drawn ahead: one by one, small draws would cost more than what they are for


class ComparisonSampler:
    """Draws comparison batches.

    Args:
        train_set: Where from; rows without a given label never enter a comparison batch.
        weights: "uniform"; "inverse-frequency", each sample weighing one over the number of
            samples with its label (section 3.2); or one non-negative weight per sample.
        seed: Of the sampler's own generator.

    Raises:
        ValueError: Weights that no draw can follow.

    Example:
        >>> data = TrainSet((torch.arange(5.0).view(5, 1), [0, 0, 0, 0, 1]))
        >>> sampler = ComparisonSampler(data, weights="inverse-frequency", seed=0)
        >>> inputs, labels = sampler.draw(2)
        >>> sorted(labels.tolist())
        [0, 1]
    """

    def __init__(self, train_set: TrainSet, *, weights: Weights = "uniform", seed: int = 0) -> None:
        self.train_set = train_set
        self.rows = RowSampler(train_set.labels, len(train_set), weights=weights, seed=seed)

    @property
    def num_rows(self) -> int:
        """How many samples there are to draw from."""
        return self.rows.num_rows

    def check_size(self, size: int) -> int:
        """The size, or all there is, said in a warning, if that is less."""
        return self.rows.check_size(size)

    def draw_rows(self, size: int) -> Tensor:
        """Row numbers of one comparison batch, in the order in which they were drawn."""
        return self.rows.draw(size)[0]

    def draw(self, size: int) -> tuple[Inputs, Tensor]:
        """Inputs and given labels of one comparison batch.

        What a Dataset draws from torch's global random state is seeded by the sampler, and the
        global state is as it was afterwards.

        Raises:
            ValueError: A size below 1.
        """
        return self.draw_with_rows(size)[:2]

    def draw_with_rows(self, size: int) -> tuple[Inputs, Tensor, Tensor]:
        """The same, and the row numbers in the order in which they were drawn."""
        rows, seed = self.rows.draw(size)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return *self.train_set.rows(rows), rows

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to draw the same batches."""
        return self.rows.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.rows.load_state_dict(state)


class RowSampler:
    """Draws row numbers, without replacement within a draw.

    Args:
        labels: Of all rows; those without one are never drawn. None if they are not known.
        size: The number of rows.
        weights: As for `ComparisonSampler`.
        seed: Of the sampler's own generator.
    """

    def __init__(
        self, labels: Tensor | None, size: int, *, weights: Weights = "uniform", seed: int = 0
    ) -> None:
        self.generator = torch.Generator("cpu").manual_seed(seed)
        self._size, self._labels = size, labels
        self._rows = None if labels is None else _labelled_rows(labels)
        self.num_rows = size if self._rows is None else len(self._rows)
        if self.num_rows == 0:
            raise ValueError(
                "Expected `train_set` to hold labelled samples, got only samples without a label."
            )
        self._guess, self._keys = self._scheme(weights)
        self._ahead = _Ahead(self.generator.get_state())

    def _scheme(self, weights: Any) -> tuple[Callable[[int], Tensor], Tensor | None]:
        """How to guess rows with replacement, and the weights if they are not equal."""
        # methods of its own, so that a sampler can be copied and pickled
        if weights is None or isinstance(weights, str):
            check_name("weights", weights, ["uniform", "inverse-frequency"])
            if weights == "uniform":
                return self._guess_uniform, None
            labels = self._known_labels()
            if not is_soft(labels):
                return self._by_class(labels)
            return self._by_weight((labels.double() / labels.double().sum(dim=0)).nansum(dim=1))
        weights = torch.as_tensor(weights, dtype=torch.float64, device="cpu")
        if weights.shape != (self._size,):
            raise ValueError(
                "Expected `weights` to have one entry per sample of `train_set` "
                f"({self._size}), got shape {tuple(weights.shape)}."
            )
        return self._by_weight(weights if self._rows is None else weights[self._rows])

    def _known_labels(self) -> Tensor:
        labels = self._labels
        if labels is None:
            raise ValueError(
                'Expected the labels of `train_set` for weights="inverse-frequency", got a Dataset '
                "without `targets` or `labels`; pass labels=."
            )
        labels = labels.cpu() if self._rows is None else labels[self._rows].cpu()
        if labels.ndim == 2 and not is_distribution(labels):
            raise ValueError(
                'Expected weights="uniform" for several labels per sample, got '
                '"inverse-frequency"; a sample has no single class to count.'
            )
        return labels

    def _guess_uniform(self, count: int) -> Tensor:
        return self._below(self.num_rows, count)

    def _by_class(self, labels: Tensor) -> tuple[Callable[[int], Tensor], Tensor]:
        ordered, members = labels.sort(stable=True)
        counts = ordered.unique_consecutive(return_counts=True)[1]
        starts = counts.cumsum(0) - counts
        self._classes = members, starts, counts
        weights = counts.double().reciprocal().repeat_interleave(counts)
        return self._guess_by_class, torch.empty_like(weights).scatter_(0, members, weights)

    def _guess_by_class(self, count: int) -> Tensor:
        # every class has the same total weight: a class, then a member of it
        members, starts, counts = self._classes
        chosen = self._below(len(counts), count)
        return members[starts[chosen] + (self._fractions(count) * counts[chosen]).long()]

    def _by_weight(self, weights: Tensor) -> tuple[Callable[[int], Tensor], Tensor]:
        if not bool(weights.isfinite().all()) or bool((weights < 0).any()):
            raise ValueError("Expected `weights` to be finite and not negative, got others.")
        if float(weights.max()) == 0:
            raise ValueError("Expected `weights` to have a positive entry, got only zeros.")
        weights = weights / weights.max()  # their sum and their reciprocals stay finite
        self.num_rows = int((weights > 0).sum())
        self._sums, self._last = weights.cumsum(0), int((weights > 0).nonzero()[-1])
        return self._guess_by_weight, weights

    def _guess_by_weight(self, count: int) -> Tensor:
        places = self._fractions(count) * self._sums[-1]
        return torch.searchsorted(self._sums, places, right=True).clamp(max=self._last)

    def _below(self, limit: int, count: int) -> Tensor:
        return torch.randint(limit, (count,), generator=self.generator, device="cpu")

    def _fractions(self, count: int) -> Tensor:
        return torch.rand(count, dtype=torch.float64, generator=self.generator, device="cpu")

    def draw(self, size: int) -> tuple[Tensor, int]:
        """Row numbers of one batch, in the order in which they were drawn, and a seed to go along.

        Raises:
            ValueError: A size below 1.
        """
        size = self.check_size(size)
        if size != self._ahead.size or self._ahead.next == len(self._ahead.seeds):
            self._ahead = _Ahead(self.generator.get_state(), size)
            self._draw_ahead()
        place = self._ahead.next
        self._ahead.next += 1
        rows = self._ahead.rows[place]
        return rows if self._rows is None else self._rows[rows], self._ahead.seeds[place]

    def _draw_ahead(self) -> None:
        size = self._ahead.size
        count = max(1, _BLOCK // size)
        self._ahead.rows = self._draw_several(size, count)
        self._ahead.seeds = self._below(2**62, count).tolist()

    def _draw_several(self, size: int, count: int) -> list[Tensor]:
        if 2 * size > self.num_rows:
            none = torch.empty(0, dtype=torch.int64, device="cpu")
            return [self._complete(none, size) for _ in range(count)]
        guesses = self._guess(count * (2 * size + 8)).view(count, -1)
        first = _first_seen(guesses)
        wanted = first & (first.cumsum(dim=1) <= size)
        draws = guesses[wanted].split(wanted.sum(dim=1).tolist())
        return [rows if len(rows) == size else self._complete(rows, size) for rows in draws]

    def _complete(self, rows: Tensor, size: int) -> Tensor:
        for _ in range(_ROUNDS if 2 * size <= self.num_rows else 0):
            guesses = torch.cat([rows, self._guess(2 * (size - len(rows)) + 8)])
            rows = guesses[_first_seen(guesses.unsqueeze(0))[0]][:size]
            if len(rows) == size:
                return rows
        return torch.cat([rows, self._sorted_draw(size - len(rows), rows)])

    def _sorted_draw(self, size: int, drawn: Tensor) -> Tensor:
        """The rest by exponential keys: linear in the training set, but never long in coming."""
        count = self._size if self._rows is None else len(self._rows)
        draws = self._fractions(count)
        keys = -draws.clamp(min=1e-300).log()
        if self._keys is not None:
            keys = keys / self._keys  # infinite for weight 0
        keys[drawn] = torch.inf
        return keys.topk(size, largest=False).indices

    def check_size(self, size: int) -> int:
        """The size, or all there is, said in a warning, if that is less.

        Raises:
            ValueError: A size below 1.
            TypeError: A size that is no whole number.
        """
        if not isinstance(size, Integral) or isinstance(size, bool):
            raise TypeError(f"Expected `comparison_size` to be a whole number, got {size!r}.")
        if size < 1:
            raise ValueError(f"Expected `comparison_size` to be at least 1, got {size}.")
        if size > self.num_rows:
            warn_caller(
                f"Expected `comparison_size` to be at most {self.num_rows}, the number of samples "
                f"to draw from, got {size}; using all of them."
            )
        return min(int(size), self.num_rows)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to draw the same batches."""
        return {
            "generator": self._ahead.generator,
            "size": self._ahead.size,
            "next": self._ahead.next,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.generator.set_state(state["generator"])
        self._ahead = _Ahead(state["generator"], state["size"])
        if self._ahead.size:
            self._draw_ahead()
        self._ahead.next = state["next"]


@dataclass
class _Ahead:
    """Batches drawn ahead, and the generator's state before that."""

    generator: Tensor
    size: int = 0
    next: int = 0
    rows: list[Tensor] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)


def _labelled_rows(labels: Tensor) -> Tensor | None:
    """The rows that carry a label, or None if all of them do."""
    known = sample_labelled(labels)
    return None if bool(known.all()) else known.nonzero().squeeze(1).cpu()


def _first_seen(guesses: Tensor) -> Tensor:
    """Where a number comes for the first time in its line: (lines, guesses) booleans."""
    ordered, places = guesses.sort(dim=1, stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.empty_like(new).scatter_(1, places, new)

"""Comparison batches: drawn from the training set, without replacement, by a generator of its own.

A draw costs the same for ten thousand rows as for ten million: rows are guessed and repetitions
guessed again, which gives exactly the distribution of drawing one by one without replacement.
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from agra.inputs import Inputs
from agra.labels import is_soft
from agra.names import check_name
from agra.train_set import TrainSet

Weights = Literal["uniform", "inverse-frequency"] | Tensor

_ROUNDS = 8  # of guessing, before the rest is drawn by sorting


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
        self.generator = torch.Generator().manual_seed(seed)
        self._rows = train_set.labelled_rows()
        self.num_rows = len(train_set) if self._rows is None else len(self._rows)
        if self.num_rows == 0:
            raise ValueError(
                "Expected `train_set` to hold labelled samples, got only samples without a label."
            )
        self._guess, self._keys = self._scheme(weights)

    def _scheme(self, weights: Any) -> tuple[Callable[[int], Tensor], Tensor | None]:
        """How to guess rows with replacement, and the weights if they are not equal."""
        if isinstance(weights, str):
            check_name("weights", weights, ["uniform", "inverse-frequency"])
            if weights == "uniform":
                return lambda n: torch.randint(self.num_rows, (n,), generator=self.generator), None
            labels = self._labels()
            if not is_soft(labels):
                return self._by_class(labels)
            return self._by_weight((labels.double() / labels.double().sum(dim=0)).nansum(dim=1))
        weights = torch.as_tensor(weights, dtype=torch.float64).cpu()
        if weights.shape != (len(self.train_set),):
            raise ValueError(
                "Expected `weights` to have one entry per sample of `train_set` "
                f"({len(self.train_set)}), got shape {tuple(weights.shape)}."
            )
        return self._by_weight(weights if self._rows is None else weights[self._rows])

    def _labels(self) -> Tensor:
        labels = self.train_set.labels
        if labels is None:
            raise ValueError(
                'Expected the labels of `train_set` for weights="inverse-frequency", got a Dataset '
                "without `targets` or `labels`; pass labels=."
            )
        labels = labels.cpu() if self._rows is None else labels[self._rows].cpu()
        if labels.ndim == 2 and not _sums_to_one(labels):
            raise ValueError(
                'Expected weights="uniform" for several labels per sample, got '
                '"inverse-frequency"; a sample has no single class to count.'
            )
        return labels

    def _by_class(self, labels: Tensor) -> tuple[Callable[[int], Tensor], Tensor]:
        _, classes, counts = labels.unique(return_inverse=True, return_counts=True)
        members = classes.argsort(stable=True)
        starts = counts.cumsum(0) - counts

        def guess(n: int) -> Tensor:
            # every class has the same total weight: a class, then a member of it
            chosen = torch.randint(len(counts), (n,), generator=self.generator)
            places = torch.rand(n, dtype=torch.float64, generator=self.generator) * counts[chosen]
            return members[starts[chosen] + places.long()]

        return guess, counts.double().reciprocal()[classes]

    def _by_weight(self, weights: Tensor) -> tuple[Callable[[int], Tensor], Tensor]:
        if not bool(weights.isfinite().all()) or bool((weights < 0).any()):
            raise ValueError("Expected `weights` to be finite and not negative, got others.")
        if float(weights.max()) == 0:
            raise ValueError("Expected `weights` to have a positive entry, got only zeros.")
        weights = weights / weights.max()  # their sum and their reciprocals stay finite
        total = weights.cumsum(0)
        self.num_rows = int((weights > 0).sum())
        last = int((weights > 0).nonzero()[-1])

        def guess(n: int) -> Tensor:
            places = torch.rand(n, dtype=torch.float64, generator=self.generator) * total[-1]
            return torch.searchsorted(total, places, right=True).clamp(max=last)

        return guess, weights

    def draw_rows(self, size: int) -> Tensor:
        """Row numbers of one comparison batch, in the order in which they were drawn.

        Raises:
            ValueError: A size below 1.
        """
        size = self.check_size(size)
        rows = torch.empty(0, dtype=torch.int64)
        for _ in range(_ROUNDS if 2 * size <= self.num_rows else 0):
            rows = _first_seen(torch.cat([rows, self._guess(2 * (size - len(rows)) + 8)]))[:size]
            if len(rows) == size:
                break
        if len(rows) < size:
            rows = torch.cat([rows, self._sorted_draw(size - len(rows), rows)])
        return rows if self._rows is None else self._rows[rows]

    def _sorted_draw(self, size: int, drawn: Tensor) -> Tensor:
        """The rest by exponential keys: linear in the training set, but never long in coming."""
        count = len(self.train_set) if self._rows is None else len(self._rows)
        draws = torch.rand(count, dtype=torch.float64, generator=self.generator)
        keys = -draws.clamp(min=1e-300).log()
        if self._keys is not None:
            keys = keys / self._keys  # infinite for weight 0
        keys[drawn] = torch.inf
        return keys.topk(size, largest=False).indices

    def check_size(self, size: int) -> int:
        """The size, or all there is, said in a warning, if that is less.

        Raises:
            ValueError: A size below 1.
        """
        if size < 1:
            raise ValueError(f"Expected `comparison_size` to be at least 1, got {size}.")
        if size > self.num_rows:
            warnings.warn(
                f"Expected `comparison_size` to be at most {self.num_rows}, the number of samples "
                f"to draw from, got {size}; using all of them.",
                stacklevel=2,
            )
        return min(size, self.num_rows)

    def draw(self, size: int) -> tuple[Inputs, Tensor]:
        """Inputs and given labels of one comparison batch.

        What a Dataset draws from torch's global random state is seeded by the sampler, and the
        global state is as it was afterwards.
        """
        rows = self.draw_rows(size)
        seed = int(torch.randint(2**62, (1,), generator=self.generator))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return self.train_set.rows(rows)

    def state_dict(self) -> dict[str, Tensor]:
        """What a resumed run needs to draw the same batches."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state."""
        self.generator.set_state(state["generator"])


def _first_seen(rows: Tensor) -> Tensor:
    """Each row once, in the order of first appearance."""
    unique, inverse = rows.unique(return_inverse=True)
    first = torch.full((len(unique),), len(rows))
    first.scatter_reduce_(0, inverse, torch.arange(len(rows)), reduce="amin")
    return rows[first.sort().values]


def _sums_to_one(labels: Tensor) -> bool:
    if not labels.is_floating_point():
        return False
    return bool(((labels.sum(dim=1) - 1).abs() <= 1e-3).all())

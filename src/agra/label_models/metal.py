"""MeTaL: what each function votes in each class, from how often two votes occur together.

Ratner et al. 2019, "Training complex models with multi-task weak supervision", for one task and
functions that are independent in each class, fitted as version 0.10 of the package snorkel does it:
the same loss, start, steps, limits and choice among equal solutions, so that numbers agree.
"""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from agra.label_models.model import LabelModel
from agra.label_models.overlaps import add_up, overlap_counts
from agra.label_models.votes import Array

_MOMENTUM = 0.9
_SMALLEST = 0.01  # of the probabilities of few rows
_SHARE = 1e-12  # of a class that never occurs, to divide by and to take the logarithm of
_HALVINGS = 40


class MeTaL(LabelModel):
    """Fits P(vote | class) so that it explains in how many rows each two votes meet.

    With the overlaps O = E[1(vote a) 1(vote b)], mu = P(vote a | class) and the class balance P,
    the loss is ||O - mu P mu'||^2 over pairs of different functions, plus ||mu p - diag(O)||^2.
    A fit costs its pass over the votes; after that the rows do not matter.

    Args:
        num_classes: K; by default the highest vote and one more, two at least.
        class_balance: (K,), the share of each class; uniform by default. `balance_of` tells it of
            labels.
        initial_precision: How often a vote is taken to be right where the descent starts.
        epochs: Steps of gradient descent with momentum.
        learning_rate: Of a step. Halved, as often as it takes, where so long a step diverges,
            which it does with hundreds of functions that always vote.
        seed: Of the start's scale, the only random number.

    Attributes:
        conditionals_: (F, K, K), the probability that a function votes (second axis) in a class
            (third axis); what is missing to one is its abstention.

    Example:
        >>> votes = [[0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 1, 0], [0, 0, -1], [1, 1, 1]]
        >>> MeTaL().fit(votes).predict([[0, 0, 1], [1, 1, 0], [-1, 1, -1]]).tolist()
        [0, 1, 1]
    """

    conditionals_: Array

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        class_balance: Any = None,
        initial_precision: float = 0.7,
        epochs: int = 100,
        learning_rate: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.num_classes = num_classes
        self.class_balance = class_balance
        self.initial_precision = initial_precision
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.seed = seed

    def _fit(self, votes: Array) -> None:
        self._check()
        rows, count = max(1, len(votes)), len(self.classes_)
        overlaps = overlap_counts(votes, count) / rows
        mu = self._descend(overlaps, self._start(np.diag(overlaps)))
        smallest = min(_SMALLEST, 10.0 ** -np.ceil(np.log10(rows)))
        mu = np.clip(mu, smallest, 1 - smallest).reshape(-1, count, count)
        self.conditionals_ = mu[:, :, self._order(mu.sum(axis=0))]

    def _log_joint(self, votes: Array) -> Array:
        count = len(self.classes_)
        table = np.log(self.conditionals_).reshape(-1, count)
        return add_up(votes, table) + np.log(np.maximum(self.class_balance_, _SHARE))

    def _check(self) -> None:
        if not 0 < self.initial_precision <= 1:
            raise ValueError(
                f"Expected `initial_precision` to be in (0, 1], got {self.initial_precision}."
            )
        if self.epochs < 1:
            raise ValueError(f"Expected `epochs` to be at least 1, got {self.epochs}.")
        if not 0 < self.learning_rate < np.inf:
            raise ValueError(
                f"Expected `learning_rate` to be positive and finite, got {self.learning_rate}."
            )

    def _start(self, shares: Array) -> Array:
        """Votes occur in their own class only, all scaled by a random number: (F * K, K)."""
        count = len(self.classes_)
        own = shares.reshape(-1, count) * self.initial_precision
        own = np.minimum(own / np.maximum(self.class_balance_, _SHARE), 1)
        mu = own[:, :, None] * np.eye(count)
        # snorkel draws from NumPy's older generator: with its seed, this is its start
        return mu.reshape(-1, count) * np.random.RandomState(self.seed).random_sample()

    def _descend(self, overlaps: Array, start: Array) -> Array:
        """The end of the first descent that does not end above its start."""
        before, _ = self._loss(overlaps, start)
        for halvings in range(_HALVINGS):
            rate, mu, velocity = self.learning_rate / 2**halvings, start, np.zeros_like(start)
            with np.errstate(over="ignore", invalid="ignore"):
                for _ in range(self.epochs):
                    velocity = _MOMENTUM * velocity + self._loss(overlaps, mu)[1]
                    mu = mu - rate * velocity
                if self._loss(overlaps, mu)[0] <= before:  # NaN is not
                    return mu
        return start

    def _loss(self, overlaps: Array, mu: Array) -> tuple[float, Array]:
        """The loss and its gradient."""
        balance, count = self.class_balance_, len(self.classes_)
        missed = overlaps - (mu * balance) @ mu.T
        own = np.arange(len(mu)).reshape(-1, count)
        missed[own[:, :, None], own[:, None, :]] = 0  # a function excludes its own other votes
        margin = mu @ balance - np.diag(overlaps)
        gradient = 2 * np.outer(margin, balance) - 4 * (missed @ mu) * balance
        return float((missed**2).sum() + (margin**2).sum()), gradient

    def _order(self, agreement: Array) -> Array:
        """The columns' order in which most votes are right; the loss cannot tell equal shares."""
        order = np.arange(len(agreement))
        rounded = self.class_balance_.round(3)
        for share in np.unique(rounded):
            group = np.flatnonzero(rounded == share)
            chosen = linear_sum_assignment(agreement[np.ix_(group, group)], maximize=True)[1]
            order[group] = group[chosen]
        return order

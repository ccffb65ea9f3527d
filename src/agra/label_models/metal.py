"""MeTaL: what each function votes in each class, from how often two votes occur together.

Ratner et al. 2019, "Training complex models with multi-task weak supervision", for one task and
functions that are independent in each class, fitted as version 0.10 of the package snorkel does it:
the same loss, start, steps, limits and choice among equal solutions, so that numbers agree.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from agra.label_models.model import LabelModel
from agra.label_models.overlaps import add_up, overlap_counts
from agra.label_models.votes import Array

_MOMENTUM = 0.9
_SMALLEST = 0.01  # of the probabilities of few rows
_SHARE = 1e-12  # of a class that never occurs, to divide by and to take the logarithm of
_HALVINGS = 40
_DIVERGED = 1e6  # for probabilities; its sixth power is still a number


@dataclass(frozen=True)
class Objective:
    """How far probabilities are from explaining the overlaps.

    A function's votes exclude each other, so its own block says nothing and is left out.

    Attributes:
        pairs: (F * K, F * K), the overlaps, zero within a function.
        shares: (F * K,), how often each vote occurs.
        balance: (K,), the share of each class.

    Example:
        >>> overlaps = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]) / 2
        >>> objective = Objective.of(overlaps, np.array([0.5, 0.5]))
        >>> objective.loss(np.array([[1, 0], [0, 1], [1, 0], [0, 1]]))
        0.0
    """

    pairs: Array
    shares: Array
    balance: Array

    @classmethod
    def of(cls, overlaps: Array, balance: Array) -> Self:
        """Of all overlaps, each function's own included."""
        functions = np.arange(len(overlaps)) // len(balance)
        other = functions[:, None] != functions
        return cls(overlaps * other, np.diag(overlaps), balance)

    def loss(self, mu: Array) -> float:
        """The squares of what is missed, in all pairs and in the shares."""
        functions = np.arange(len(mu)) // len(self.balance)
        missed = self.pairs - (mu * self.balance) @ mu.T
        missed[functions[:, None] == functions] = 0
        return float((missed**2).sum() + ((mu @ self.balance - self.shares) ** 2).sum())

    def gradient(self, mu: Array) -> Array:
        """The loss's derivative; explained pairs are summed without being written down."""
        blocks = mu.reshape(-1, len(self.balance), len(self.balance))
        own = blocks.transpose(0, 2, 1) @ blocks
        explained = (blocks * self.balance) @ (own.sum(axis=0) - own)
        missed = self.pairs @ mu - explained.reshape(mu.shape)
        margin = mu @ self.balance - self.shares
        return 2 * np.outer(margin, self.balance) - 4 * missed * self.balance


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
        *,
        num_classes: int | None = None,
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
        objective = Objective.of(overlaps, self.class_balance_)
        mu = self._descend(objective, self._start(objective.shares))
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
        if not isinstance(self.epochs, Integral) or self.epochs < 1:
            raise ValueError(
                f"Expected `epochs` to be a whole number, 1 at least, got {self.epochs!r}."
            )
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

    def _descend(self, objective: Objective, start: Array) -> Array:
        """The end of the first descent that does not end above its start."""
        before = objective.loss(start)
        for halvings in range(_HALVINGS):
            mu = self._steps(objective, start, self.learning_rate / 2**halvings)
            if np.isfinite(mu).all() and objective.loss(mu) <= before:
                return mu
        return start

    def _steps(self, objective: Objective, mu: Array, rate: float) -> Array:
        velocity = np.zeros_like(mu)
        for _ in range(self.epochs):
            velocity = _MOMENTUM * velocity + objective.gradient(mu)
            mu = mu - rate * velocity
            if np.abs(mu).max(initial=0) > _DIVERGED:
                return np.full_like(mu, np.inf)
        return mu

    def _order(self, agreement: Array) -> Array:
        """The columns' order in which most votes are right; the loss cannot tell equal shares."""
        order = np.arange(len(agreement))
        rounded = self.class_balance_.round(3)
        for share in np.unique(rounded):
            group = np.flatnonzero(rounded == share)
            chosen = linear_sum_assignment(agreement[np.ix_(group, group)], maximize=True)[1]
            order[group] = group[chosen]
        return order

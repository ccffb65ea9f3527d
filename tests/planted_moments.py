"""Votes of independent functions whose accuracies are known, and the same for the recordings."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Planted:
    """Functions that vote with a probability, and are right with another, whatever the class."""

    accuracies: tuple[float, ...]
    coverages: tuple[float, ...]
    balance: tuple[float, ...]
    rows: int = 2000
    seed: int = 0

    def draw(self):
        """The votes and the true labels; what is wrong is so uniformly."""
        rng = np.random.default_rng(self.seed)
        count = len(self.balance)
        truth = np.searchsorted(np.cumsum(self.balance)[:-1], rng.random(self.rows), side="right")
        shape = (self.rows, len(self.accuracies))
        right = rng.random(shape) < self.accuracies
        others = 1 + np.floor(rng.random(shape) * (count - 1)).astype(int)
        votes = np.where(right, truth[:, None], (truth[:, None] + others) % count)
        return np.where(rng.random(shape) < self.coverages, votes, -1), truth


RECORDED = {
    "two classes": Planted((0.9, 0.8, 0.7, 0.6, 0.55), (1, 0.8, 0.6, 0.5, 0.9), (0.5, 0.5)),
    "three classes, not balanced": Planted(
        (0.9, 0.8, 0.75, 0.7, 0.6, 0.5), (0.9, 0.5, 0.7, 1, 0.3, 0.8), (0.5, 0.3, 0.2), seed=1
    ),
    "four classes, few votes": Planted(
        (0.8,) * 8, (0.1, 0.2) * 4, (0.25,) * 4, rows=1000, seed=2
    ),
    "one function never votes": Planted((0.8, 0.7, 0.6, 0.5), (1, 1, 1, 0), (0.5, 0.5), seed=3),
}

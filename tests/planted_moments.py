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
    "four classes, few votes": Planted((0.8,) * 8, (0.1, 0.2) * 4, (0.25,) * 4, rows=1000, seed=2),
    "one function never votes": Planted((0.8, 0.7, 0.6, 0.5), (1, 1, 1, 0), (0.5, 0.5), seed=3),
}


NONE = -1
DEGENERATE = {
    "no rows": (np.zeros((0, 3), dtype=int), 2),
    "no functions": (np.zeros((4, 0), dtype=int), 2),
    "one row": (np.array([[1, 0, 1]]), 2),
    "one class": (np.zeros((5, 3), dtype=int), 1),
    "one function": (np.array([[0], [1], [NONE], [1]]), 2),
    "two functions": (np.array([[0, 0], [1, NONE], [1, 0], [NONE, NONE]]), 2),
    "two that are like coins": (np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), 2),
    "nobody votes": (np.full((5, 4), NONE), 3),
    "one never votes": (np.array([[0, 0, 1, NONE], [1, 1, 1, NONE], [0, 0, 0, NONE]]), 2),
    "all agree": (np.repeat([[0], [1], [2], [1]], 5, axis=1), 3),
    "always the same": (np.full((6, 4), 1), 3),
    "each for a class of its own": (np.tile([0, 1, 2], (6, 1)), 3),
    "no overlap": (np.where(np.eye(4, dtype=bool), 1, NONE), 2),
    "three that meet in pairs": (np.array([[0, 0, NONE], [NONE, 1, 1], [2, NONE, 0]]), 3),
    "a class without votes": (np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 1, 0]]), 5),
}

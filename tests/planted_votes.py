"""Votes whose makers' accuracies, propensities and class balance are known, and votes of no use."""

import numpy as np


def plant(rows, accuracies, *, propensities=1.0, balance=(0.5, 0.5), seed=0):
    """Votes (rows, functions) as int8, -1 for none, and the true classes (rows,).

    A function votes with its propensity, is right with its accuracy, and spreads wrong votes
    evenly over the other classes, independently of all others.
    """
    rng = np.random.default_rng(seed)
    shape = (rows, len(accuracies))
    truth = rng.choice(len(balance), size=rows, p=balance)
    away = rng.integers(1, max(2, len(balance)), size=shape)
    away[rng.random(shape) < np.asarray(accuracies)] = 0
    votes = ((truth[:, None] + away) % len(balance)).astype(np.int8)
    votes[rng.random(shape) >= np.broadcast_to(propensities, shape[1:])] = -1
    return votes, truth


# what makes estimates divide by zero or take its logarithm
DEGENERATE = {
    "a function never votes": [[0, 1, -1], [1, 1, -1], [0, 0, -1]],
    "functions never disagree": [[0, 0, 0], [1, 1, 1], [1, 1, 1]],
    "all vote the same": [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
    "functions always disagree": [[0, 1], [1, 0], [0, 1], [1, 0]],
    "a single function": [[0], [1], [1], [-1]],
    "no overlap": [[0, -1, -1], [-1, 1, -1], [-1, -1, 1]],
    "each function votes for one class": [[0, -1, 1], [0, 2, -1], [-1, 2, 1], [0, 2, 1]],
    "nobody votes": [[-1, -1], [-1, -1]],
    "rows without votes": [[-1, -1], [0, 1], [-1, -1], [1, 1]],
    "one row": [[0, 1, 1]],
    "no rows": np.empty((0, 3), dtype=np.int64),
    "no functions": np.empty((3, 0), dtype=np.int64),
}

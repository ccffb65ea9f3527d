"""Dawid-Skene: for each annotator, what is said of which class."""

from typing import Any

import numpy as np

from agra.label_models.distinct import DistinctRows
from agra.label_models.independent import IndependentVotes
from agra.label_models.votes import Array


class DawidSkene(IndependentVotes):
    """A confusion matrix per annotator or function, by EM (Dawid and Skene 1979), smoothed.

    Whether abstaining tells something: a crowd's annotator abstains where not asked, which does
    not; a labelling function abstains where its pattern is missing, which may. A function that
    votes for a single class is without any information if only its votes count, since it says the
    same of all classes; when all functions are like that, every row would fall to one class. So by
    default abstaining counts, as a vote of its own kind, when functions of a single class cast
    more than half of all votes.

    EM starts from the vote shares, as a majority vote does.

    Args:
        num_classes: K; by default the highest vote plus one, and at least two.
        class_balance: (K,), the share of each class; learned by default.
        abstain_counts: Whether abstaining counts as a vote; by default as said above.
        smoothing: Votes added to each cell of the confusion matrices.
        tol: Stop when an iteration gains no more than that, in log-likelihood per row.
        max_iter: Stop, with a warning, after so many iterations.

    Attributes:
        confusions_: (F, K, K), the probability of each vote for each true class; (F, K, K + 1)
            where abstaining counts, which is last.
        abstain_counts_: Whether it does.
        class_balance_: (K,), the share of each class.
        n_iter_: How often the posteriors were computed.
        objectives_: (n_iter_,), log-likelihood plus log-prior per row; never falls.

    Example:
        >>> votes = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 0]]
        >>> model = DawidSkene().fit(votes)
        >>> model.predict(votes).tolist()
        [0, 1, 0, 1, 1]
        >>> model.confusions_[2].round(2).tolist()  # who mistakes each class for the other
        [[0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(
        self,
        *,
        num_classes: int | None = None,
        class_balance: Any = None,
        abstain_counts: bool | None = None,
        smoothing: float = 0.01,
        tol: float = 1e-7,
        max_iter: int = 1000,
    ) -> None:
        self.num_classes = num_classes
        self.class_balance = class_balance
        self.abstain_counts = abstain_counts
        self.smoothing = smoothing
        self.tol = tol
        self.max_iter = max_iter

    confusions_: Array
    abstain_counts_: bool

    def _start(self, rows: DistinctRows) -> Array:
        self._check_positive("smoothing")
        count = len(self.classes_)
        used = self._cast_votes(rows)
        narrow = (used > 0).sum(axis=1) == 1
        self.abstain_counts_ = (
            bool(2 * used[narrow].sum() > used.sum())
            if self.abstain_counts is None
            else self.abstain_counts
        )
        shares = rows.cast @ np.tile(np.eye(count), (self.n_features_in_, 1))
        shares[~shares.any(axis=1)] = 1
        return shares / shares.sum(axis=1, keepdims=True)

    def _maximise(self, votes: Array, mass: Array) -> None:
        if self.abstain_counts_:
            silent = np.maximum(0, mass - votes.sum(axis=2))  # rounding may fall below
            votes = np.concatenate([votes, silent[:, :, None]], axis=2)
        votes = votes + self.smoothing
        self.confusions_ = votes / votes.sum(axis=2, keepdims=True)

    def _tables(self) -> tuple[Array, Array]:
        tables = np.log(self.confusions_)
        if not self.abstain_counts_:
            return np.zeros(len(self.classes_)), tables
        silent = tables[:, :, -1]
        return silent.sum(axis=0), tables[:, :, :-1] - silent[:, :, None]

    def _log_rest(self) -> float:
        return float(self.smoothing * np.log(self.confusions_).sum())

    @property
    def _learns_balance(self) -> bool:
        return self.class_balance is None

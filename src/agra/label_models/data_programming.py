"""Data Programming: how often each labelling function votes, and how often it is right."""

from typing import Any

import numpy as np
from scipy.special import xlogy

from agra.label_models.distinct import DistinctRows
from agra.label_models.independent import IndependentVotes
from agra.label_models.votes import Array

# chosen with the true labels of the paper's five text sets in view: from about here on, none of
# them is read worse than by a majority vote; with 200, one still is
_PRIOR_VOTES = 1000.0
_CERTAIN = 1e-12  # no function is trusted closer than that to always or never


class DataProgramming(IndependentVotes):
    """The generative model of Ratner et al. 2016, "Data Programming", for independent functions.

    Function f votes with a probability of its own, its propensity; a vote is right with another,
    its accuracy; a wrong vote falls evenly on the other classes. Neither depends on the class, so
    that abstaining tells nothing about it: a row's posterior comes from the votes that were cast,
    and a row without any has the class balance.

    The marginal likelihood is maximised by EM, with the exact sum over the classes where the paper
    samples. The accuracies have a Beta prior, as if each function had cast `prior_votes` before, a
    share `prior_accuracy` of them right, and EM starts there, which is a majority vote. The prior
    decides about functions that overlap with no other, of which the votes say nothing. It is
    strong for a reason: where each function votes for one class only, the likelihood alone may be
    highest if all rows have the same class, who votes for it is always right and who votes for
    another always wrong; with two classes it is. Where functions, or annotators, vote for all
    classes, `prior_votes=2` follows the votes more closely, and the balance may be learned.

    Args:
        num_classes: K; by default the highest vote plus one, and at least two.
        class_balance: (K,), the share of each class; uniform by default.
        learn_balance: Learn it, too, from there.
        prior_accuracy: What share of a function's votes is right before any is seen.
        prior_votes: How many votes that belief is worth.
        tol: Stop when an iteration gains no more than that, in log-likelihood per row.
        max_iter: Stop, with a warning, after so many iterations.

    Attributes:
        accuracies_: (F,), the probability that a vote is right.
        propensities_: (F,), the probability to vote.
        class_balance_: (K,), the share of each class.
        n_iter_: How often the posteriors were computed.
        objectives_: (n_iter_,), log-likelihood plus log-prior per row; never falls.

    Example:
        >>> votes = [[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1], [1, 1, -1]]
        >>> model = DataProgramming(prior_votes=2).fit(votes)
        >>> model.accuracies_.round(2).tolist(), model.propensities_.round(2).tolist()
        ([0.94, 0.94, 0.6], [1.0, 1.0, 0.8])
        >>> model.predict([[1, -1, 0]]).tolist()
        [1]
    """

    def __init__(
        self,
        *,
        num_classes: int | None = None,
        class_balance: Any = None,
        learn_balance: bool = False,
        prior_accuracy: float = 0.8,
        prior_votes: float = _PRIOR_VOTES,
        tol: float = 1e-7,
        max_iter: int = 1000,
    ) -> None:
        self.num_classes = num_classes
        self.class_balance = class_balance
        self.learn_balance = learn_balance
        self.prior_accuracy = prior_accuracy
        self.prior_votes = prior_votes
        self.tol = tol
        self.max_iter = max_iter

    accuracies_: Array
    propensities_: Array

    def _start(self, rows: DistinctRows) -> Array:
        if not 0 < self.prior_accuracy < 1:
            raise ValueError(
                "Expected `prior_accuracy` to be between 0 and 1, both excluded, got "
                f"{self.prior_accuracy}."
            )
        self._check_positive("prior_votes")
        total = int(rows.counts.sum())
        cast = self._cast_votes(rows).sum(axis=1)
        self.propensities_ = cast / max(1, total)
        silent = xlogy(total - cast, 1 - self.propensities_)
        self._log_casting = float((xlogy(cast, self.propensities_) + silent).sum())
        self.accuracies_ = np.full(self.n_features_in_, float(self.prior_accuracy))
        return self._expect(rows)[0]

    def _maximise(self, votes: Array, mass: Array) -> None:
        right = np.einsum("fkk->f", votes) + self.prior_votes * self.prior_accuracy
        total = votes.sum(axis=(1, 2)) + self.prior_votes
        self.accuracies_ = np.clip(right / total, _CERTAIN, 1 - _CERTAIN)

    def _tables(self) -> tuple[Array, Array]:
        count = len(self.classes_)
        right, wrong = self.accuracies_, (1 - self.accuracies_) / max(1, count - 1)
        same = np.eye(count, dtype=bool)
        tables = np.where(same, np.log(right)[:, None, None], np.log(wrong)[:, None, None])
        return np.zeros(count), tables

    def _log_rest(self) -> float:
        right, wrong = np.log(self.accuracies_), np.log1p(-self.accuracies_)
        belief = self.prior_accuracy * right + (1 - self.prior_accuracy) * wrong
        return float(self.prior_votes * belief.sum()) + self._log_casting

    @property
    def _learns_balance(self) -> bool:
        return self.learn_balance

"""Functions that vote independently of each other once the class is known, fitted by EM."""

from abc import abstractmethod
from typing import Any

import numpy as np

from agra.label_models.distinct import DistinctRows, distinct_rows, one_hot
from agra.label_models.model import LabelModel
from agra.label_models.votes import Array
from agra.names import warn_caller

_BLOCK = 2**18  # rows at a time when predicting


class IndependentVotes(LabelModel):
    """Expectation maximisation over the distinct rows; what a function is like is for subclasses.

    The sum over the classes is exact. With N the number of rows, what is maximised and never falls
    is the log-likelihood of the votes plus the logarithm of the prior, both divided by N.

    Attributes:
        n_iter_: How often the posteriors were computed.
        objectives_: (n_iter_,), what is maximised, at each of these times.
    """

    tol: float
    max_iter: int
    n_iter_: int
    objectives_: Array

    @abstractmethod
    def _start(self, rows: DistinctRows) -> Array:
        """Check the parameters, learn what needs no iteration: posteriors to start from (P, K)."""

    @abstractmethod
    def _maximise(self, votes: Array, mass: Array) -> None:
        """The M-step, from expected votes (F, class, vote) and the expected rows per class (K,)."""

    @abstractmethod
    def _tables(self) -> tuple[Array, Array]:
        """For each class, the log-probability that nobody votes (K,), and what a vote adds to it.

        The latter is (F, class, vote); both may leave out what is the same for all classes.
        """

    @abstractmethod
    def _log_rest(self) -> float:
        """The logarithm of the prior density, and what `_tables` left out, over all rows."""

    @property
    @abstractmethod
    def _learns_balance(self) -> bool: ...

    def _fit(self, votes: Array) -> None:
        _check_stopping(self.tol, self.max_iter)
        rows = distinct_rows(votes, len(self.classes_))
        self._step(rows, self._start(rows))
        objectives: list[float] = []
        for _ in range(self.max_iter):
            posteriors, likelihood = self._expect(rows)
            total = likelihood + self._log_rest() + self._log_balance_prior()
            objectives.append(total / max(1, len(votes)))
            if len(objectives) > 1 and objectives[-1] - objectives[-2] <= self.tol:
                break
            self._step(rows, posteriors)
        else:
            warn_caller(
                f"{type(self).__name__} still gained more than `tol` after {self.max_iter} "
                "iterations; raise `max_iter` or `tol`."
            )
        self.objectives_ = np.array(objectives)
        self.n_iter_ = len(objectives)

    def _expect(self, rows: DistinctRows) -> tuple[Array, float]:
        """The E-step: posteriors (P, K) and the log-likelihood of all rows."""
        logs = self._from_one_hot(rows.cast)
        top = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - top)
        total = shares.sum(axis=1, keepdims=True)
        shares /= total
        return shares, float(rows.counts @ (top + np.log(total)).ravel())

    def _step(self, rows: DistinctRows, posteriors: Array) -> None:
        count = len(self.classes_)
        weighted = posteriors * rows.counts[:, None]
        votes = (rows.cast.T @ weighted).reshape(self.n_features_in_, count, count)
        mass = weighted.sum(axis=0)
        self._maximise(votes.transpose(0, 2, 1), mass)
        if self._learns_balance:  # with one row more, spread evenly: no class ever dies out
            self.class_balance_ = (mass + 1 / count) / (mass.sum() + 1)

    def _log_balance_prior(self) -> float:
        """The Dirichlet prior behind the row that `_step` adds."""
        return float(np.log(self.class_balance_).mean()) if self._learns_balance else 0.0

    def _cast_votes(self, rows: DistinctRows) -> Array:
        """How often each function voted for each class: (F, K)."""
        return (rows.cast.T @ rows.counts).reshape(self.n_features_in_, len(self.classes_))

    def _log_joint(self, votes: Array) -> Array:
        count = len(self.classes_)
        logs = np.empty((len(votes), count))
        for start in range(0, len(votes), _BLOCK):
            block = slice(start, start + _BLOCK)
            logs[block] = self._from_one_hot(one_hot(votes[block], count))
        return logs

    def _from_one_hot(self, cast: Any) -> Array:
        nobody, tables = self._tables()
        count = len(self.classes_)
        weights = tables.transpose(0, 2, 1).reshape(self.n_features_in_ * count, count)
        with np.errstate(divide="ignore"):  # a class may be given no share
            return cast @ weights + (nobody + np.log(self.class_balance_))

    def _check_positive(self, argument: str) -> None:
        value = getattr(self, argument)
        if not 0 < value < np.inf:
            raise ValueError(f"Expected `{argument}` to be a number greater than 0, got {value}.")


def _check_stopping(tol: float, max_iter: int) -> None:
    if not tol >= 0:
        raise ValueError(f"Expected `tol` to be at least 0, got {tol}.")
    if max_iter < 1:
        raise ValueError(f"Expected `max_iter` to be at least 1, got {max_iter}.")

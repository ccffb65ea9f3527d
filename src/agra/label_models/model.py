"""What every label model has: fitted on votes, it tells the probability of each class."""

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from agra.label_models.majority import most_probable
from agra.label_models.votes import ABSTAIN, Array, as_votes


class LabelModel(BaseEstimator, ABC):
    """Votes to labels, in scikit-learn's manner; `votes` stand where X stands elsewhere.

    Attributes:
        classes_: 0 to K - 1.
        class_balance_: (K,), the share of each class.
        n_features_in_: The number of functions.
    """

    num_classes: int | None
    class_balance: Any
    classes_: Array
    class_balance_: Array
    n_features_in_: int

    def fit(self, votes: Any, y: Any = None) -> Self:
        """Learn how far each function can be trusted.

        Args:
            votes: (N, F), class indices, -1 where a function abstained.
            y: Ignored; scikit-learn passes it.

        Raises:
            ValueError: Votes or a class balance that cannot be.
        """
        count = self._count_classes(votes)
        balance, checked = self._given_balance(count), as_votes(votes, count)
        self.classes_, self.class_balance_ = np.arange(count), balance
        self.n_features_in_ = checked.shape[1]
        self._fit(checked)
        return self

    @abstractmethod
    def _fit(self, votes: Array) -> None:
        """Learn from votes that were checked; may replace `class_balance_`."""

    @abstractmethod
    def _log_joint(self, votes: Array) -> Array:
        """Up to a constant per row, the logarithm of P(votes, class): (N, K)."""

    def predict_proba(self, votes: Any) -> Array:
        """The probability of each class: (N, K).

        Raises:
            NotFittedError: Before `fit`.
            ValueError: Votes of other functions or classes.
        """
        logs = self._log_joint(self._same_functions(votes))
        logs = np.exp(logs - logs.max(axis=1, keepdims=True))
        return logs / logs.sum(axis=1, keepdims=True)

    def predict(self, votes: Any) -> Array:
        """The most probable class: (N,); ties fall by the row number, as in `majority_vote`."""
        return most_probable(self.predict_proba(votes))

    def _same_functions(self, votes: Any) -> Array:
        check_is_fitted(self, "n_features_in_")
        checked = as_votes(votes, len(self.classes_))
        if checked.shape[1] != self.n_features_in_:
            raise ValueError(
                f"Expected `votes` of the {self.n_features_in_} functions that were fitted, got "
                f"{checked.shape[1]} columns."
            )
        return checked

    def _count_classes(self, votes: Any) -> int:
        """As many as are said, or have a share, or else as the votes name."""
        if self.num_classes is None:
            if self.class_balance is not None and np.size(self.class_balance) > 1:
                return len(self.class_balance)
            found = as_votes(votes, np.iinfo(np.int64).max)
            return max(2, int(found.max(initial=ABSTAIN)) + 1)
        if not isinstance(self.num_classes, Integral) or self.num_classes < 1:
            raise ValueError(
                "Expected `num_classes` to be None or a whole number from 1, got "
                f"{self.num_classes!r}."
            )
        return int(self.num_classes)

    def _given_balance(self, count: int) -> Array:
        if self.class_balance is None:
            return np.full(count, 1 / count)
        balance = np.asarray(self.class_balance)
        numbers = balance.dtype.kind in "iuf" and balance.shape == (count,)
        if not (numbers and (balance >= 0).all() and abs(balance.sum() - 1) <= 1e-6):
            raise ValueError(
                f"Expected `class_balance` to be {count} shares that sum to one, got "
                f"{np.ravel(balance)[:8].tolist()}."
            )
        return balance / balance.sum()

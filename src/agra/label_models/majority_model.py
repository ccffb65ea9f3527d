"""The majority of the votes as a label model: nothing to learn, every function counts the same."""

from typing import Any

import numpy as np

from agra.label_models.majority import majority_vote, vote_shares
from agra.label_models.model import LabelModel
from agra.label_models.votes import Array, count_votes


class MajorityVote(LabelModel):
    """The share of each class among a row's votes, uniform where there is none.

    `predict` is `majority_vote`: ties, and rows without a vote, fall by the row number.

    Args:
        num_classes: K; by default the highest vote plus one, and at least two.

    Attributes:
        class_balance_: (K,), the mean of the vote shares; it does not enter the predictions.

    Example:
        >>> model = MajorityVote().fit([[1, 1, 0], [0, -1, 0], [-1, -1, -1]])
        >>> model.predict_proba([[1, 1, 1], [0, -1, 0], [1, 0, -1]]).tolist()
        [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    """

    class_balance = None  # of no use to a count

    def __init__(self, *, num_classes: int | None = None) -> None:
        self.num_classes = num_classes

    def predict_proba(self, votes: Any) -> Array:
        """The vote shares: (N, K).

        Raises:
            NotFittedError: Before `fit`.
            ValueError: Votes of other functions or classes.
        """
        return vote_shares(self._same_functions(votes), len(self.classes_))

    def predict(self, votes: Any) -> Array:
        """The class with the most votes: (N,), from whole counts as `majority_vote` has them."""
        return majority_vote(self._same_functions(votes), len(self.classes_))

    def _fit(self, votes: Array) -> None:
        if len(votes):
            self.class_balance_ = vote_shares(votes, len(self.classes_)).mean(axis=0)

    def _log_joint(self, votes: Array) -> Array:
        with np.errstate(divide="ignore"):  # no vote for a class is a share of zero
            counts = count_votes(votes, len(self.classes_))
            counts[~counts.any(axis=1)] = 1
            return np.log(counts)

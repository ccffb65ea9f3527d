"""What baselines with a linear model have in common: the estimators' surface, another learner."""

from abc import abstractmethod
from typing import Any

from torch import Tensor, nn

from agra.decisions import Rule
from agra.estimators import AgraClassifier
from agra.estimators.training import Training
from agra.linear_learner import LinearLearner
from agra.loop import Loop


class LinearBaseline(AgraClassifier):
    """Fitting, validation and prediction are those of `AgraClassifier`; who learns is another.

    What concerns judging alone is no parameter of a baseline.
    """

    judging = False
    module = None
    class_weight = None

    @abstractmethod
    def _learner(self, plain: LinearLearner, epochs: int) -> LinearLearner:
        """Who learns, from the model, data and optimizer of the plain learner."""

    def _rule(self) -> Rule:
        return Rule()

    def _loop(self, model: nn.Module, found: Training, epochs: Any, held_out: Any) -> Loop:
        loop = super()._loop(model, found, epochs, held_out)
        assert isinstance(loop.learner, LinearLearner)
        loop.learner = self._learner(loop.learner, loop.epochs)
        return loop


def shares_of(labels: Tensor, num_classes: int, weights: Tensor | None) -> Tensor:
    """The share of each class among labels that are there: (K,)."""
    known = labels >= 0
    weights = None if weights is None else weights[known]
    counts = labels[known].bincount(weights, minlength=num_classes).double()
    return counts / counts.sum()

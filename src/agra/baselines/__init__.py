"""Other ways to train on noisy labels, on the same learner and loop."""

from agra.baselines.cores import CORES2
from agra.baselines.plain import PlainClassifier
from agra.baselines.pruning import Cleanlab

__all__ = ["CORES2", "Cleanlab", "PlainClassifier"]

"""Other ways to train on noisy labels, on the same learner and loop."""

from agra.baselines.cores import CORES2
from agra.baselines.methods import Method
from agra.baselines.plain import PlainClassifier
from agra.baselines.pruning import Cleanlab
from agra.baselines.registry import METHODS, find_method

__all__ = ["CORES2", "Cleanlab", "METHODS", "Method", "PlainClassifier", "find_method"]

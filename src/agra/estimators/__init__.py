"""The scikit-learn door."""

from agra.estimators.classifier import AgraClassifier
from agra.estimators.multilabel import AgraMultilabelClassifier

__all__ = ["AgraClassifier", "AgraMultilabelClassifier"]

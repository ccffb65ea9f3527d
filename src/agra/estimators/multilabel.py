"""The classifier for several labels per sample."""

from typing import Any, Literal

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from torch import Tensor

from agra.decisions import MultilabelRule
from agra.estimators.estimator import AgraEstimator
from agra.estimators.targets import Array, label_matrix
from agra.gradients.parameters import Selection
from agra.labels import labelled
from agra.losses import Criterion
from agra.sampling import Weights


class AgraMultilabelClassifier(ClassifierMixin, AgraEstimator):
    """A classifier for several labels per sample that judges every entry of the label matrix.

    One sigmoid regression per label, or any PyTorch module, trained by Algorithm 2 of the paper.

    Args:
        criterion: The comparison loss: "bce", "f1" (appendix A), or a callable.
        weights: How comparison batches are drawn: "uniform", or one weight per sample.
        threshold: A similarity must be above it; 0 in the paper, which drops almost half of all
            entries, whatever the noise: -0.2 leaves out what clearly disagrees.
        momentum: Of the comparison gradient over steps; 0 in the paper.
        parameters: As for `AgraClassifier`.
        comparison_size: Of the comparison batch; None for that of the update batch.
        learning_rate: η, of Adam. "auto" is 0.01, less for rows that are longer than 4 in the root
            mean square, and 0.001 for a module.
        batch_size: M, samples per update.
        weight_decay: λ, in the gradient.
        epochs: How many at most. "auto" is 10, as in the paper, and more on so few rows that these
            would not make 50 updates.
        judging: False trains on all labels as given.
        selection: As for `AgraClassifier`.
        scoring: A scorer of scikit-learn, or its name, for validation; None for macro F1.
        patience: Stop after this many epochs without a better score; None never stops early.
        module: As for `AgraClassifier`.
        random_state: Of the order of the samples and of the comparison batches.
        verbose: Show a progress bar.

    Example:
        >>> from sklearn.datasets import make_multilabel_classification
        >>> X, y = make_multilabel_classification(random_state=0)
        >>> model = AgraMultilabelClassifier(random_state=0).fit(X, y)
        >>> model.predict(X).shape
        (100, 5)
    """

    _default_scoring = "f1_macro"

    def __init__(
        self,
        *,
        criterion: str | Criterion = "bce",
        weights: Weights = "uniform",
        threshold: float = -0.2,
        momentum: float = 0.0,
        parameters: Selection = None,
        comparison_size: int | None = None,
        learning_rate: float | Literal["auto"] = "auto",
        batch_size: int = 128,
        weight_decay: float = 1e-3,
        epochs: int | Literal["auto"] = "auto",
        judging: bool = True,
        selection: Literal["auto", "validation", "last"] = "auto",
        scoring: Any = None,
        patience: int | None = None,
        module: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.criterion = criterion
        self.weights = weights
        self.threshold = threshold
        self.momentum = momentum
        self.parameters = parameters
        self.comparison_size = comparison_size
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.judging = judging
        self.selection = selection
        self.scoring = scoring
        self.patience = patience
        self.module = module
        self.random_state = random_state
        self.verbose = verbose

    def decision_function(self, X: Any) -> Array:
        """The outputs (N, K), above 0 where a label is more likely than not."""
        return self._outputs(X)

    def predict_proba(self, X: Any) -> Array:
        """The probability of every label: (N, K)."""
        return expit(self._outputs(X))

    def predict(self, X: Any) -> Array:
        """A 0/1 matrix (N, K), one column per entry of ``classes_``."""
        return (self._outputs(X) > 0).astype(np.int64)

    def _decide(self, outputs: Array) -> tuple[Array, Array]:
        yes = (outputs > 0).astype(np.float32)
        return yes, expit(np.abs(outputs)).astype(np.float32)

    def _targets(self, y: Any, classes: Any = None) -> tuple[Array, Tensor]:
        return label_matrix(y, classes)

    def _announced(self, classes: Any) -> Array:
        return np.asarray(classes)  # in the order of the columns

    def _rule(self) -> MultilabelRule:
        return MultilabelRule(self.threshold)

    def _class_weights(self, labels: Tensor) -> Tensor | None:
        return None

    def _check_classes(self, labels: Tensor) -> None:
        if not bool(labelled(labels).any()):
            raise ValueError("Expected `y` to hold known entries, got only unknown ones.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

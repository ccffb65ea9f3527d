"""The classifier for one label per sample."""

from typing import Any, Literal

import numpy as np
import torch
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from agra.decisions import Rule
from agra.estimators.estimator import AgraEstimator
from agra.estimators.targets import Array, class_codes
from agra.gradients.parameters import Selection
from agra.labels import labelled
from agra.losses import Criterion
from agra.sampling import Weights


class AgraClassifier(ClassifierMixin, AgraEstimator):
    """A classifier that judges every label while it trains on it.

    Softmax regression, or any PyTorch module, trained by Algorithm 1 of the paper: a sample whose
    gradient points against that of a comparison batch is left out of the update, or takes part
    with another label.

    Args:
        criterion: The comparison loss (section 3.3): "cross-entropy", "f1", or a callable.
        weights: How comparison batches are drawn: "uniform", "inverse-frequency" (section 3.2), or
            one weight per sample.
        alternative_label: y' of the paper: a class that a sample may be given instead of its own,
            "any" for the best of all, None to only keep or drop.
        threshold: A similarity must be above it; 0 in the paper.
        momentum: Of the comparison gradient over steps; 0 in the paper.
        parameters: Which parameters are compared; None leaves the bias of a linear model out, as
            the paper does, "*" counts it. For a module see `select_parameters`.
        comparison_size: Of the comparison batch; None for that of the update batch.
        learning_rate: η, of Adam. "auto" is 0.01, less for rows that are longer than 4 in the root
            mean square, and 0.001 for a module.
        batch_size: M, samples per update.
        weight_decay: λ, in the gradient.
        epochs: How many at most. "auto" is 10, as in the paper, and more on so few rows that these
            would not make 50 updates.
        class_weight: "balanced", {class: weight}, or None.
        judging: False trains on all labels as given.
        selection: "validation" keeps the weights of the best epoch, "last" those of the last one;
            "auto" is "validation" where `fit` gets some.
        scoring: A scorer of scikit-learn, or its name, for validation; None for accuracy.
        patience: Stop after this many epochs without a better score; None never stops early.
        module: What to train instead of the linear model: a `torch.nn.Module`, which is copied, or
            a callable ``(features, outputs)`` that makes one.
        random_state: Of the order of the samples and of the comparison batches.
        verbose: Show a progress bar.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> wrong = y.copy()
        >>> wrong[::5] = (wrong[::5] + 1) % 10
        >>> model = AgraClassifier(random_state=0).fit(X / 16, wrong)
        >>> model.score(X / 16, y) > 0.9
        True
    """

    _default_scoring = "accuracy"

    def __init__(
        self,
        *,
        criterion: str | Criterion = "cross-entropy",
        weights: Weights = "inverse-frequency",
        alternative_label: Any = None,
        threshold: float = 0.0,
        momentum: float = 0.0,
        parameters: Selection = None,
        comparison_size: int | None = None,
        learning_rate: float | Literal["auto"] = "auto",
        batch_size: int = 128,
        weight_decay: float = 1e-3,
        epochs: int | Literal["auto"] = "auto",
        class_weight: Any = None,
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
        self.alternative_label = alternative_label
        self.threshold = threshold
        self.momentum = momentum
        self.parameters = parameters
        self.comparison_size = comparison_size
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.class_weight = class_weight
        self.judging = judging
        self.selection = selection
        self.scoring = scoring
        self.patience = patience
        self.module = module
        self.random_state = random_state
        self.verbose = verbose

    def decision_function(self, X: Any) -> Array:
        """The outputs (N, K); for two classes (N,), above 0 for the second."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class: (N, K)."""
        return softmax(self._outputs(X), axis=1)

    def predict(self, X: Any) -> Array:
        """The most probable class of every sample."""
        best = self._outputs(X).argmax(axis=1)
        return self.classes_[best]

    def _decide(self, outputs: Array) -> tuple[Array, Array]:
        best = outputs.argmax(axis=1)
        shares = softmax(outputs, axis=1)[np.arange(len(best)), best]
        return best, shares.astype(np.float32)

    def _targets(self, y: Any, classes: Any = None) -> tuple[Array, Tensor]:
        return class_codes(y, classes)

    def _announced(self, classes: Any) -> Array:
        return class_codes(classes)[0]

    def _rule(self) -> Rule:
        label = self.alternative_label
        if label is None or (isinstance(label, str) and label == "any"):
            return Rule(None if label is None else "any", self.threshold)
        places = [place for place, known in enumerate(self.classes_.tolist()) if known == label]
        if not places:
            raise ValueError(
                f"Expected `alternative_label` to be one of the classes "
                f'{self.classes_.tolist()[:8]}, "any" or None, got {label!r}.'
            )
        return Rule(places[0], self.threshold)

    def _class_weights(self, labels: Tensor) -> Tensor | None:
        if self.class_weight is None:
            return None
        known = labelled(labels)
        own = self.classes_[labels[known].numpy()]
        per_class = np.ones(len(self.classes_))
        found = np.isin(np.arange(len(self.classes_)), labels[known].numpy())
        per_class[found] = compute_class_weight(
            self.class_weight, classes=self.classes_[found], y=own
        )
        weights = torch.ones(len(labels))
        weights[known] = torch.from_numpy(per_class).float()[labels[known]]
        return weights

    def _check_classes(self, labels: Tensor) -> None:
        found = labels[labelled(labels)].unique()
        if len(found) < 2:
            shown = self.classes_[found.numpy()].tolist()
            raise ValueError(
                "Expected `y` to hold samples of at least 2 classes, with weights above 0, got "
                f"{len(found)} class: {shown}."
            )

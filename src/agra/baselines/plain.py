"""Training on labels as they are, hard or soft: what label models hand on."""

from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from agra.baselines.linear import LinearBaseline
from agra.estimators.targets import Array
from agra.estimators.training import Training
from agra.labels import check_labels, labelled, sample_labelled
from agra.linear_learner import LinearLearner
from agra.loop import Loop
from agra.losses import cross_entropy


class PlainClassifier(LinearBaseline):
    """Softmax regression on the labels as given, which may be probabilities.

    With one label per sample it is `AgraClassifier` with ``judging=False``.

    Args:
        learning_rate: Of Adam; "auto" as for `AgraClassifier`.
        batch_size: Samples per update.
        weight_decay: In the gradient.
        epochs: How many at most; "auto" as for `AgraClassifier`.
        selection: "validation" keeps the weights of the best epoch, "last" those of the last one;
            "auto" is "validation" where `fit` gets some.
        scoring: A scorer of scikit-learn, or its name, for validation; None for accuracy.
        patience: Stop after this many epochs without a better score; None never stops early.
        random_state: Of the order of the samples.
        verbose: Show a progress bar.

    Attributes:
        classes_: The labels found; of probabilities the names of their columns, or 0 to K - 1.

    Example:
        >>> X, y = [[0.0], [1.0], [2.0]], [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]
        >>> PlainClassifier(random_state=0).fit(X, y).predict([[-1.0], [3.0]]).tolist()
        [0, 1]
    """

    def __init__(
        self,
        *,
        learning_rate: float | Literal["auto"] = "auto",
        batch_size: int = 128,
        weight_decay: float = 1e-3,
        epochs: int | Literal["auto"] = "auto",
        selection: Literal["auto", "validation", "last"] = "auto",
        scoring: Any = None,
        patience: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.selection = selection
        self.scoring = scoring
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose

    def _learner(self, plain: LinearLearner, epochs: int) -> LinearLearner:
        return SoftLearner(plain.model, plain.data, plain.optimizer)

    def _loop(self, model: Any, found: Training, epochs: Any, held_out: Any) -> Loop:
        if held_out is not None and np.ndim(held_out[1]) == 2:
            raise ValueError(
                "Expected `validation` to have one label per sample, got probabilities; scores "
                "compare predictions with labels."
            )
        return super()._loop(model, found, epochs, held_out)

    def _targets(self, y: Any, classes: Any = None) -> tuple[Array, Tensor]:
        rows = y.to_numpy() if isinstance(y, pd.DataFrame) else np.asarray(y)
        if rows.ndim != 2 or rows.shape[1] < 2 or rows.dtype.kind != "f":
            return super()._targets(y, classes)
        if classes is None:
            classes = np.array(y.columns) if isinstance(y, pd.DataFrame) else np.arange(len(rows.T))
        labels = torch.from_numpy(rows.astype(np.float32))
        check_labels(labels, len(labels), len(classes))
        return classes, labels

    def _check_classes(self, labels: Tensor) -> None:
        if labels.ndim == 2:  # one index per class that has any share
            shares = labels[sample_labelled(labels)].sum(dim=0)
            labels = (shares > 0).nonzero().squeeze(1)
        super()._check_classes(labels[labelled(labels)])


class SoftLearner(LinearLearner):
    """Trains a linear model on class indices, or on rows of probabilities."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        # a matrix of labels is for the plain linear learner one of several labels per sample
        self._update_loss = cross_entropy

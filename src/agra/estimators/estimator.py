"""What the estimators for one label and for several have in common."""

import os
from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from agra.decisions import MultilabelRule, Rule
from agra.estimators import reading, storage, training
from agra.estimators.targets import Array
from agra.estimators.training import Training
from agra.issues import LabelIssues, Summary
from agra.ledger import Ledger
from agra.loop import Epoch, Loop
from agra.names import check_name


class AgraEstimator(BaseEstimator):
    """Fitting, and what follows from it. Parameters are those of the concrete classes.

    Attributes:
        classes_: The classes or labels, in the order of the outputs.
        model_: What was trained: a `LinearModel`, or a copy of ``module``.
        ledger_: What happened to every sample that took part; None without judging.
        label_quality_: In [0, 1] per given label, low is suspicious; NaN where none was judged.
        learning_rate_: The one in use.
        history_: One `Epoch` after the other.
        n_iter_: How many there were.
        best_epoch_: The one whose weights were kept, counted from 0.
        n_features_in_: Columns of X.
        feature_names_in_: Their names, if X had any.
    """

    criterion: Any
    weights: Any
    threshold: float
    momentum: float
    parameters: Any
    comparison_size: int | None
    learning_rate: float | Literal["auto"]
    batch_size: int
    weight_decay: float
    epochs: int | Literal["auto"]
    judging: bool
    selection: Literal["auto", "validation", "last"]
    scoring: Any
    patience: int | None
    module: Any
    random_state: Any
    verbose: bool

    classes_: Array
    model_: nn.Module
    ledger_: Ledger | None
    learning_rate_: float
    history_: list[Epoch]
    n_iter_: int
    best_epoch_: int
    n_features_in_: int
    feature_names_in_: Array

    _default_scoring: str
    _optimizer: torch.optim.Optimizer
    _chunks: int  # of a stream, after the first
    _index: Any  # of the training rows, as pandas has them
    _issues: LabelIssues | None

    @abstractmethod
    def _targets(self, y: Any, classes: Any = None) -> tuple[Array, Tensor]:
        """The classes, and the labels as tensors."""

    @abstractmethod
    def _announced(self, classes: Any) -> Array:
        """The classes of a stream."""

    @abstractmethod
    def _rule(self) -> Rule | MultilabelRule:
        """What may become of a sample."""

    @abstractmethod
    def _class_weights(self, labels: Tensor) -> Tensor | None:
        """What each sample weighs for its class."""

    @abstractmethod
    def _check_classes(self, labels: Tensor) -> None:
        """Refuse labels that no classifier can come from."""

    @abstractmethod
    def _decide(self, outputs: Array) -> tuple[Array, Array]:
        """What outputs predict, shaped as labels are, and the probability of that."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        """Train on noisy labels.

        Args:
            X: Array, CSR matrix or DataFrame; with ``module`` also of more dimensions.
            y: The given labels; missing ones (NaN, None) are never learned from.
            sample_weight: What each sample weighs in the comparison and in the update.
            validation: ``(X, y)`` with labels that are right, as far as possible.

        Raises:
            ValueError: Whatever scikit-learn refuses; labels, weights or settings that cannot work.
        """
        with reading.unchanged_by_errors(self):
            check_name("selection", self.selection, ["auto", "validation", "last"])
            features = reading.read_features(self, X, reset=True)
            classes, labels = self._targets(self._required(y))
            held_out = reading.read_validation(self, validation, classes)
            self.classes_, self._chunks = classes, 0
            found = reading.read_training(self, features, labels, sample_weight)
            self._check_classes(found.labels)
            epochs = training.num_epochs(self, len(found.labels))
            loop = self._loop(self._fresh_model(found.features), found, epochs, held_out)
        try:
            training.run(loop, verbose=bool(self.verbose))
        finally:  # what an interrupted run has learned is not lost
            self._finish(loop, found, features, labels, reading.row_index(X, y))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on one more chunk of a stream: one epoch, judged within the chunk.

        The ledger, and with it the label issues, are those of the newest chunk.

        Args:
            X: As for `fit`.
            y: As for `fit`.
            classes: All classes or labels of the stream; required at the first call.
            sample_weight: As for `fit`.

        Raises:
            ValueError: As `fit`; a class that was not announced.
        """
        with reading.unchanged_by_errors(self):
            first = not hasattr(self, "model_")
            features = reading.read_features(self, X, reset=first)
            announced = self._all_classes(classes, first=first)
            labels = self._targets(self._required(y), announced)[1]
            self.classes_ = announced
            found = reading.read_training(self, features, labels, sample_weight)
            self._chunks = 0 if first else self._chunks + 1
            some = found.features if len(found.labels) else features
            model = self._fresh_model(some) if first else self.model_
            if not len(found.labels):  # nothing to learn from
                self.model_, self.history_, self.n_iter_, self.best_epoch_ = model, [], 0, -1
                self.ledger_ = self._issues = None
                return self
            loop = self._loop(model, found, 1, None)
        training.run(loop, verbose=bool(self.verbose))
        self._finish(loop, found, features, labels, reading.row_index(X, y))
        return self

    def _all_classes(self, classes: Any, *, first: bool) -> Array:
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if first:
            return self._announced(classes)
        known = self.classes_.tolist()
        if classes is not None and self._announced(classes).tolist() != known:
            raise ValueError(
                f"Expected `classes` to be those of the first call, {known[:8]}, got "
                f"{list(classes)[:8]}."
            )
        return self.classes_

    def _required(self, y: Any) -> Any:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        return y

    def _fresh_model(self, features: Any) -> nn.Module:
        model = training.make_model(self, len(self.classes_))
        training.check_model(model, features, len(self.classes_))
        self.learning_rate_ = training.learning_rate(self, features)
        self._optimizer = training.make_optimizer(self, model, self.learning_rate_)
        return model

    def _loop(self, model: nn.Module, found: Training, epochs: Any, held_out: Any) -> Loop:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1)) + self._chunks
        self.model_ = model
        learner = training.make_learner(self, found, self._rule(), seed)
        validate = None
        if held_out is not None:
            scorer = get_scorer(self.scoring or self._default_scoring)
            validate = lambda _: scorer(self, *held_out)  # noqa: E731
        return Loop(
            learner,
            epochs=epochs,
            batch_size=self.batch_size,
            validate=validate,
            patience=self.patience,
            keep_best=self.selection != "last",
            seed=seed,
        )

    def _finish(
        self, loop: Loop, found: Training, features: Any, labels: Tensor, index: Any
    ) -> None:
        self.history_ = loop.history
        self.n_iter_ = len(loop.history)
        best = loop.best_epoch if self.selection != "last" else None
        self.best_epoch_ = self.n_iter_ - 1 if best is None else best
        self.ledger_ = loop.learner.ledger
        self._index = index
        self._issues = None
        if self.ledger_ is None:
            return
        parts: list[tuple[Array, Array]] = []
        training.for_each_part(self.model_, features, lambda part: parts.append(self._decide(part)))
        predicted, confidence = (np.concatenate(part) for part in zip(*parts, strict=True))
        final = torch.from_numpy(predicted), torch.from_numpy(confidence)
        self._issues = LabelIssues.of(labels, final, self.ledger_, found.rows)

    @property
    def label_quality_(self) -> Array:
        """In [0, 1] per given label, low is suspicious; NaN where none was judged."""
        return self._judged().quality.numpy()

    def find_label_issues(self) -> pd.DataFrame:
        """Every given label with its quality, worst and best, indexed like X.

        Returns:
            Columns ``is_label_issue, label_quality, given_label, predicted_label``, and
            ``drop_rate, mean_score, suggested_label, confidence``. For several labels per sample
            one row per (sample, label).

        Raises:
            NotFittedError: Before `fit`.
            ValueError: After a fit without judging.
        """
        return self._judged().to_frame(self.classes_, self._index)

    def issues_summary(self) -> Summary:
        """Label issues per class, and which class should be which.

        Raises:
            NotFittedError: Before `fit`.
            ValueError: After a fit without judging.
        """
        return self._judged().summary(self.classes_)

    def _judged(self) -> LabelIssues:
        check_is_fitted(self)
        if self._issues is None:
            raise ValueError(
                "Expected a fit with judging=True to tell label issues, got one without."
            )
        return self._issues

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything into a folder, whole or not at all, without pickle.

        Raises:
            NotFittedError: Before `fit`.
            FileExistsError: The folder holds something else.
            TypeError: Classes that are neither strings nor numbers.
        """
        check_is_fitted(self)
        storage.save(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, module: Any = None) -> Self:
        """What `save` wrote. Nothing that is read is ever executed.

        Args:
            folder: The folder.
            module: For one that was trained with ``module=``: the same architecture again.

        Raises:
            FileNotFoundError: No saved estimator there.
            ValueError: Damaged files, or files of another kind or version.
        """
        return storage.load(folder, {cls.__name__: cls}, module)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_iter_")

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        return training.outputs_of(self.model_, reading.read_features(self, X, reset=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags

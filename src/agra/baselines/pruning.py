"""Cleanlab: confident learning finds wrong labels, and training leaves them out."""

import importlib
import inspect
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from agra.estimators import AgraClassifier
from agra.estimators.targets import Array, class_codes
from agra.names import check_name

FILTERS = (
    "both",
    "confident_learning",
    "low_normalized_margin",
    "low_self_confidence",
    "predicted_neq_given",
    "prune_by_class",
    "prune_by_noise_rate",
)


def _has_decision_function(estimator: "Cleanlab") -> bool:
    inner = getattr(estimator, "classifier_", estimator.classifier)
    return inner is None or hasattr(inner, "decision_function")


class Cleanlab(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier trained on what the package cleanlab does not flag (Northcutt et al. 2021).

    Every sample is predicted by a classifier that was trained without its fold; from these
    probabilities and the given labels cleanlab tells which labels look wrong.

    Args:
        classifier: Any classifier with `predict_proba`; None for `AgraClassifier` with
            ``judging=False``. It is cloned, once per fold and for the final fit.
        folds: How many.
        filter_by: Which of cleanlab's filters flags labels.
        random_state: Of the folds, and of the classifier that None stands for.

    Attributes:
        classes_: The classes.
        classifier_: The one fitted on what was kept.
        sample_kept_: (N,), 1 where a sample was kept, 0 where it was flagged; NaN where it had no
            label. A class whose samples were all flagged keeps them, or it would be forgotten; the
            only sample of a class is in no fold, and kept.
        n_features_in_: Columns of X.
        feature_names_in_: Their names, if X had any.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> wrong = y.copy()
        >>> wrong[::5] = (wrong[::5] + 1) % 10
        >>> model = Cleanlab(folds=3, random_state=0).fit(X / 16, wrong)
        >>> bool(model.sample_kept_[::5].mean() < 0.2 < 0.8 < model.sample_kept_[1::5].mean())
        True
    """

    classes_: Array
    classifier_: Any
    sample_kept_: Array
    n_features_in_: int
    feature_names_in_: Array

    def __init__(
        self,
        classifier: Any = None,
        *,
        folds: int = 5,
        filter_by: str = "prune_by_noise_rate",
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.folds = folds
        self.filter_by = filter_by
        self.random_state = random_state

    def fit(self, X: Any, y: Any, validation: Any = None) -> Self:
        """Find the labels that look wrong, and train without them.

        Args:
            X: Array or CSR matrix.
            y: The given labels; missing ones (NaN, None) are never learned from.
            validation: ``(X, y)`` for classifiers that take it in their `fit`, as those of this
                package do; in every fold, and at the end.

        Raises:
            ModuleNotFoundError: The package cleanlab is not installed.
            ValueError: Whatever scikit-learn refuses; settings that cannot work.
        """
        self._check_settings()
        flagging = _cleanlab()
        if y is None:
            raise ValueError("Cleanlab requires y to be passed, but the target y is None.")
        features = validate_data(self, X, accept_sparse="csr")
        self.classes_, labels = class_codes(y)
        codes = labels.numpy()
        if features.shape[0] != len(codes):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"[{features.shape[0]}, {len(codes)}]"
            )
        self._check_classes()
        rng = check_random_state(self.random_state)
        inner, more = self._inner(rng, validation)
        rows = np.flatnonzero(codes >= 0)
        # tables stay tables, so that every classifier sees the names that `predict` will see
        table = X if hasattr(X, "iloc") else features
        kept = self._kept(flagging, _take(table, rows), codes[rows], (inner, more, rng))
        self.sample_kept_ = np.full(len(codes), np.nan)
        self.sample_kept_[rows] = kept
        chosen = rows[kept]
        self.classifier_ = clone(inner).fit(
            _take(table, chosen), self.classes_[codes[chosen]], **more
        )
        return self

    def _check_settings(self) -> None:
        check_name("filter_by", self.filter_by, FILTERS)
        if not isinstance(self.folds, Integral) or self.folds < 2:
            raise ValueError(f"Expected `folds` to be a whole number of 2 up, got {self.folds!r}.")

    def _check_classes(self) -> None:
        if len(self.classes_) < 2:
            raise ValueError(
                "Expected `y` to hold samples of at least 2 classes, with labels, got "
                f"{len(self.classes_)} class: {self.classes_.tolist()}."
            )

    def _inner(self, rng: Any, validation: Any) -> tuple[Any, dict[str, Any]]:
        """The classifier to clone, and what its `fit` gets beside X and y."""
        inner = self.classifier
        if inner is None:
            inner = AgraClassifier(judging=False, random_state=int(rng.randint(2**31 - 1)))
        if not hasattr(inner, "predict_proba"):
            raise ValueError(
                "Expected `classifier` to have `predict_proba`, which cleanlab needs, got "
                f"{type(inner).__name__}."
            )
        if validation is None:
            return inner, {}
        if "validation" not in inspect.signature(inner.fit).parameters:
            raise ValueError(
                "Expected `validation` to be None with a classifier that takes none in its fit, "
                f"got some for {type(inner).__name__}."
            )
        return inner, {"validation": validation}

    def _kept(self, flagging: Any, features: Any, codes: Array, parts: Any) -> Array:
        """Which samples cleanlab does not flag, and at least one of each class."""
        flagged = flagging(
            codes,
            self._out_of_fold(features, codes, *parts),
            filter_by=self.filter_by,
            n_jobs=1,
        )
        counts = np.bincount(codes[~flagged], minlength=len(self.classes_))
        return ~flagged | (counts[codes] == 0)

    def _out_of_fold(self, features: Any, codes: Array, inner: Any, more: Any, rng: Any) -> Array:
        """The probabilities of every sample, by a classifier that has not seen it: (N, K)."""
        folds = assign_folds(codes, self.folds, rng)
        found = np.zeros((len(codes), len(self.classes_)))
        for fold in range(self.folds):
            held_out = folds == fold
            if not held_out.any():
                continue
            rest = np.flatnonzero(~held_out)
            model = clone(inner).fit(_take(features, rest), self.classes_[codes[rest]], **more)
            found[held_out] = model.predict_proba(_take(features, np.flatnonzero(held_out)))
        alone = folds < 0  # certain of itself: there is nobody to ask
        found[alone, codes[alone]] = 1
        return found

    def predict(self, X: Any) -> Array:
        """The most probable class of every sample."""
        return self._fitted().predict(X)

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class: (N, K)."""
        return self._fitted().predict_proba(X)

    @available_if(_has_decision_function)  # type: ignore[untyped-decorator]  # scikit-learn's
    def decision_function(self, X: Any) -> Array:
        """What the classifier decides by."""
        return self._fitted().decision_function(X)

    def _fitted(self) -> Any:
        check_is_fitted(self, "classifier_")
        return self.classifier_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags


def assign_folds(codes: Array, folds: int, rng: Any) -> Array:
    """One fold per sample, so that no class misses in what is left: (N,).

    The samples of each class, shuffled, are dealt out one fold after the other; -1, which is never
    held out, for a sample that is alone in its class.

    Example:
        >>> assign_folds(np.array([0, 0, 1, 1, 2]), 2, np.random.RandomState(0)).tolist()[-1]
        -1
    """
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    found = np.empty(len(codes), dtype=np.int64)
    found[order] = np.arange(len(codes)) % folds
    found[np.bincount(codes)[codes] == 1] = -1
    return found


def _take(table: Any, rows: Array) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _cleanlab() -> Any:
    try:
        return importlib.import_module("cleanlab.filter").find_label_issues
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Expected the package 'cleanlab' to be installed; run pip install 'agra[cleanlab]'."
        ) from error

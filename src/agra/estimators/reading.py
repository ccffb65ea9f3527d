"""What users pass to `fit`, checked before any work starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import Tensor

from agra.estimators.targets import Array
from agra.estimators.training import Training

if TYPE_CHECKING:
    from agra.estimators.estimator import AgraEstimator

_SINGLE = np.finfo(np.float32).max


@contextmanager
def unchanged_by_errors(estimator: "AgraEstimator") -> Iterator[None]:
    """What is refused leaves the estimator as it was, fitted or not."""
    before = dict(estimator.__dict__)
    try:
        yield
    except Exception:  # whatever it was; it is raised again
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def read_features(estimator: "AgraEstimator", X: Any, *, reset: bool) -> Any:
    """X as an array or a CSR matrix of finite numbers.

    Raises:
        ValueError: Whatever scikit-learn refuses, in its words.
    """
    linear = estimator.module is None
    features = validate_data(estimator, X, reset=reset, accept_sparse="csr", allow_nd=not linear)
    values = features.data if hasattr(features, "indptr") else features
    if values.dtype == np.float64 and values.size:
        # rounded to single precision they must still be finite
        if max(-values.min(), values.max()) > _SINGLE:
            raise ValueError("Input X contains infinity or a value too large for dtype('float32').")
        if not linear:
            features = features.astype(np.float32)
    return features


def read_training(
    estimator: "AgraEstimator", features: Any, labels: Tensor, sample_weight: Any
) -> Training:
    """What there is to learn from.

    Raises:
        ValueError: Another number of labels or weights than of rows, or weights below 0.
    """
    if features.shape[0] != len(labels):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{features.shape[0]}, {len(labels)}]"
        )
    weights = estimator._class_weights(labels)
    if sample_weight is not None:
        given = _check_sample_weight(
            sample_weight, features, dtype=np.float32, ensure_non_negative=True
        )
        own = torch.from_numpy(given)
        weights = own if weights is None else own * weights
    rule = estimator._rule()
    unlabelled = getattr(rule, "alternative_label", None) is not None and estimator.judging
    return Training.of(features, labels, weights, unlabelled=unlabelled)


def row_index(X: Any, y: Any) -> Any:
    """That of X, or else of y, as pandas has it; None without one."""
    for part in (X, y):
        if isinstance(part, pd.DataFrame | pd.Series):
            return part.index
    return None


def read_validation(
    estimator: "AgraEstimator", validation: Any, classes: Array
) -> tuple[Any, Any] | None:
    """Features and labels to validate on, as scorers take them; None without any.

    Raises:
        ValueError: Not ``(X, y)``, missing where the selection needs it, or labels that training
            does not know.
    """
    if validation is None:
        if estimator.selection == "validation":
            raise ValueError(
                'Expected `validation` with selection="validation", got None; pass '
                'validation=(X, y) to fit, or selection="last".'
            )
        return None
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ValueError(f"Expected `validation` to be (X, y), got {type(validation).__name__}.")
    features = read_features(estimator, validation[0], reset=False)
    _, labels = estimator._targets(validation[1], classes)
    if features.shape[0] != len(labels):
        raise ValueError(
            f"Expected as many rows as labels in `validation`, got {features.shape[0]} and "
            f"{len(labels)}."
        )
    if bool(labels.isnan().any() if labels.ndim == 2 else (labels < 0).any()):
        raise ValueError("Expected `validation` to have a label for every row, got missing ones.")
    # as it was passed: scorers ask the estimator, which looks at names
    return validation[0], labels.numpy() if labels.ndim == 2 else classes[labels.numpy()]

"""What `y` may be, and the tensors that it becomes."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from agra.labels import IGNORE_LABEL

Array = np.ndarray[Any, Any]


def class_codes(y: Any, classes: Array | None = None) -> tuple[Array, Tensor]:
    """The classes, sorted, and one index into them per sample; ``IGNORE_LABEL`` where y is missing.

    Args:
        y: Any hashable labels; NaN, None, ``pandas.NA`` and the number ``IGNORE_LABEL`` are none.
        classes: Those known already; None to find them in y.

    Raises:
        ValueError: No one-dimensional labels of classes, or a class that is not among those known.

    Example:
        >>> classes, codes = class_codes(["ham", None, "spam", "ham"])
        >>> classes.tolist(), codes.tolist()
        (['ham', 'spam'], [0, -100, 1, 0])
    """
    labels = _labels(y)
    missing = np.asarray(pd.isna(labels), dtype=bool)
    if labels.dtype.kind in "iu":
        missing |= labels == IGNORE_LABEL  # as data sets and judges mark them
    known = labels[~missing]
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if len(known) and known.dtype.kind != "O":
        check_classification_targets(known)
    codes, found = pd.factorize(known)
    found = np.asarray(found, dtype=known.dtype)
    if classes is None:
        classes = _sorted(found)
    places = {label: place for place, label in enumerate(classes.tolist())}
    if strange := [label for label in found.tolist() if label not in places]:
        raise ValueError(
            f"Expected `y` to hold only the classes {_short(classes.tolist())}, got "
            f"{_short(strange)} too; announce every class at the start, or leave these rows out."
        )
    order = np.array([places[label] for label in found.tolist()], dtype=np.int64)
    all_codes = np.full(len(labels), IGNORE_LABEL, dtype=np.int64)
    all_codes[~missing] = order[codes]
    return classes, torch.from_numpy(all_codes)


def _labels(y: Any) -> Array:
    """One label per sample, whatever they are: tuples stay tuples."""
    if isinstance(y, list | tuple) and any(isinstance(label, tuple | frozenset) for label in y):
        labels = np.empty(len(y), dtype=object)
        for place, label in enumerate(y):
            labels[place] = label
        return labels
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if isinstance(y, pd.Series | pd.Index):
        y = y.to_numpy()
        if y.dtype == object and all(isinstance(label, str) for label in y.flat):
            y = y.astype(str)
    elif isinstance(y, list | tuple) and any(label is None or _is_nan(label) for label in y):
        y = np.array(y, dtype=object)  # or they would become "None" and "nan" among strings
    return column_or_1d(y, warn=True)


def _is_nan(label: Any) -> bool:
    return isinstance(label, float) and label != label


def _sorted(found: Array) -> Array:
    if found.dtype.kind != "O":
        return np.sort(found)
    values = found.tolist()
    try:
        values = sorted(values)
    except TypeError:  # labels of several kinds have an order only by what they look like
        values = sorted(values, key=lambda label: (type(label).__name__, repr(label)))
    kinds = {type(label) for label in values}
    if len(kinds) == 1 and kinds <= {str, bool, int, float}:
        return np.array(values)
    classes = np.empty(len(values), dtype=object)
    classes[:] = values
    return classes


def label_matrix(y: Any, classes: Array | None = None) -> tuple[Array, Tensor]:
    """The labels, and a 0/1 matrix of which sample carries which; NaN where unknown.

    Args:
        y: A 0/1 matrix, dense, sparse or a DataFrame with a column per label, NaN where unknown; or
            one set of labels per sample, None where nothing is known of it.
        classes: The labels known already; None to find them in y.

    Raises:
        ValueError: Neither of these, or a label that is not among those known.

    Example:
        >>> labels, matrix = label_matrix([{"red"}, {"red", "round"}, None])
        >>> labels.tolist(), matrix.tolist()
        (['red', 'round'], [[1.0, 0.0], [1.0, 1.0], [nan, nan]])
    """
    names: Any = None
    if isinstance(y, pd.DataFrame):
        names, y = np.asarray(y.columns), y.to_numpy(dtype=np.float32, na_value=np.nan)
    elif sparse.issparse(y):
        y = y.toarray()
    if not hasattr(y, "ndim") and _is_sets(y):
        return _from_sets(list(y), classes)
    matrix = np.asarray(y)
    if matrix.ndim == 1 and matrix.dtype == object and _is_sets(matrix):
        return _from_sets(matrix.tolist(), classes)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biufO":
        raise ValueError(
            "Expected `y` to be a 0/1 matrix with one column per label, or one set of labels per "
            f"sample, got {matrix.dtype} of shape {matrix.shape}."
        )
    return _from_matrix(matrix.astype(np.float32), names, classes)


def _from_matrix(matrix: Array, names: Any, classes: Array | None) -> tuple[Array, Tensor]:
    if not np.isin(matrix[~np.isnan(matrix)], (0, 1)).all():
        wrong = matrix[~np.isnan(matrix) & ~np.isin(matrix, (0, 1))][0]
        raise ValueError(f"Expected `y` to hold 0, 1, or NaN for unknown entries, got {wrong}.")
    found = np.arange(matrix.shape[1]) if names is None else names
    if names is not None and classes is not None and _other_names(names, classes):
        places = {name: place for place, name in enumerate(names.tolist())}
        if missing := [label for label in classes.tolist() if label not in places]:
            raise ValueError(
                f"Expected `y` to have a column for each of the labels {_short(classes.tolist())}, "
                f"got none for {_short(missing)}."
            )
        if len(places) > len(classes):
            raise ValueError(
                f"Expected `y` to have columns for the labels {_short(classes.tolist())} only, got "
                f"{_short(names.tolist())}."
            )
        matrix, found = matrix[:, [places[label] for label in classes.tolist()]], classes
    if classes is not None and len(classes) != len(found):
        raise ValueError(
            f"Expected `y` to have one column for each of the {len(classes)} labels, got "
            f"{len(found)} columns."
        )
    return found if classes is None else classes, torch.from_numpy(matrix)


def _other_names(names: Array, classes: Array) -> bool:
    numbered = classes.tolist() == list(range(len(classes)))  # labels that never had names
    return not numbered and names.tolist() != classes.tolist()


def _is_sets(y: Any) -> bool:
    parts = [part for part in y if part is not None]
    if parts and all(isinstance(part, set | frozenset) for part in parts):
        return True
    return any(
        isinstance(part, list | tuple) and any(isinstance(label, str) for label in part)
        for part in parts
    )


def _from_sets(
    sets: list[Iterable[Hashable] | None], classes: Array | None
) -> tuple[Array, Tensor]:
    pairs = [(row, label) for row, part in enumerate(sets) for label in (part or ())]
    labels = np.empty(len(pairs), dtype=object)
    labels[:] = [label for _, label in pairs]
    classes, codes = class_codes(labels, classes)
    matrix = torch.zeros(len(sets), len(classes))
    matrix[torch.tensor([row for row, _ in pairs], dtype=torch.int64), codes] = 1
    matrix[[row for row, part in enumerate(sets) if part is None]] = torch.nan
    return classes, matrix


def _short(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:8])
    return f"[{shown}{', ...' if len(labels) > 8 else ''}]"

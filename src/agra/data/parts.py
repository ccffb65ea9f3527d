"""What the parts of a data set may be, and one form for each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from agra.label_models.votes import as_votes
from agra.labels import IGNORE_LABEL

Array = np.ndarray[Any, Any]


def _frozen(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def input_rows(inputs: Any, size: int) -> Any:
    """Numbers, a CSR matrix, or an array of texts or paths; nothing of it can be written to."""
    if isinstance(inputs, pd.DataFrame | pd.Series):
        inputs = inputs.to_numpy()
    if sparse.issparse(inputs):
        inputs = inputs.tocsr()
        found = inputs.shape[0]
    elif isinstance(inputs, np.ndarray) and inputs.dtype.kind in "biuf":
        found, inputs = len(inputs), _frozen(inputs)
    else:
        inputs = _frozen(_objects(inputs))
        found = len(inputs)
    if found != size:
        raise ValueError(f"Expected one row of `inputs` per label ({size}), got {found}.")
    return inputs


def _objects(inputs: Any) -> Array:
    """Texts or paths; lists of numbers become an array of numbers."""
    values = list(inputs)
    if values and not any(isinstance(value, str | Path) for value in values):
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array
    for row, value in enumerate(values):
        if not isinstance(value, str | Path):
            raise TypeError(
                f"Expected `inputs` to be numbers, texts or paths, got {type(value).__name__} in "
                f"row {row}."
            )
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def label_codes(labels: Any, num_classes: int, name: str) -> Array:
    """Class indices (N,), or a 0/1 matrix (N, K)."""
    array = np.asarray(labels)
    if array.ndim == 2:
        array = array.astype(np.float32)
        wrong = ~np.isnan(array) & ~np.isin(array, (0, 1))
        if wrong.any() or array.shape[1] != num_classes:
            given = f"{array[wrong][0]:g}" if wrong.any() else f"{array.shape[1]} columns"
            raise ValueError(
                f"Expected `{name}` to be 0, 1 or NaN with one column per class ({num_classes}), "
                f"got {given}."
            )
        return _frozen(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise ValueError(
            f"Expected `{name}` to be class indices or a 0/1 matrix, got {array.dtype} of shape "
            f"{array.shape}."
        )
    array = array.astype(np.int64)
    wrong = (array != IGNORE_LABEL) & ((array < 0) | (array >= num_classes))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Expected `{name}` to be in [0, {num_classes - 1}], or {IGNORE_LABEL} for none, got "
            f"{array[row]} in row {row}."
        )
    return _frozen(array)


def vote_matrix(votes: Any, size: int, num_classes: int) -> Array:
    """Votes (N, F) in [-1, K)."""
    array = as_votes(votes, num_classes)
    if len(array) != size:
        raise ValueError(f"Expected one row of `votes` per label ({size}), got {len(array)}.")
    return _frozen(array)


def function_names(functions: Sequence[str], votes: Array | None) -> tuple[str, ...]:
    """One different name per column of the votes."""
    count = 0 if votes is None else votes.shape[1]
    names = tuple(str(name) for name in functions) or tuple(str(n) for n in range(count))
    if len(names) != count or len(set(names)) < count:
        raise ValueError(
            f"Expected `functions` to name each of the {count} columns of `votes` differently, got "
            f"{names[:8]}."
        )
    return names


def unique_ids(ids: Any, size: int) -> Array:
    """One different id per row."""
    array = np.arange(size) if ids is None else np.asarray(ids)
    if array.shape != (size,):
        raise ValueError(f"Expected one of `ids` per label ({size}), got shape {array.shape}.")
    values, counts = np.unique(array, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1].tolist()[0]
        raise ValueError(f"Expected `ids` to be different, got {twice!r} more than once.")
    return _frozen(array)


def known(labels: Array) -> Array:
    """Which labels, or entries, are there."""
    return ~np.isnan(labels) if labels.ndim == 2 else labels >= 0


def named(labels: Array, classes: Sequence[str]) -> Array:
    """Labels by name: None where there is none; sets for several labels."""
    names = np.empty(len(labels), dtype=object)
    if labels.ndim == 2:
        names[:] = [{classes[k] for k in np.flatnonzero(row == 1).tolist()} for row in labels]
        names[np.isnan(labels).all(axis=1)] = None
        return names
    table = np.array([*classes, None], dtype=object)
    names[:] = table[np.where(labels < 0, len(classes), labels)]
    return names

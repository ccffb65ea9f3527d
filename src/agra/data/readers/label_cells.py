"""Cells of a table to labels: class indices, votes, or a 0/1 matrix for several labels per row."""

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from agra.data.readers.cells import Array, class_name, class_names
from agra.data.readers.classes import Classes, Survey
from agra.data.readers.columns import Target
from agra.data.readers.records import Records
from agra.label_models.votes import ABSTAIN
from agra.labels import IGNORE_LABEL

_FLAGS = {"": np.nan, "0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1}


def labels(records: Records, target: Target, known: Survey) -> Array:
    """Class indices (N,), ``IGNORE_LABEL`` for none; or a 0/1 matrix (N, K), NaN for unknown.

    Args:
        records: The rows.
        target: Which of their cells.
        known: The classes.

    Raises:
        ValueError: Anything that is no class.

    Example:
        >>> part = Records("a.csv", pd.DataFrame({"label": ["spam", ""]}), [2, 3], "line")
        >>> labels(part, "label", Survey(("ham", "spam"), several=False)).tolist()
        [1, -100]
    """
    if not isinstance(target, str):
        return _flags(records, target, known.classes)
    if known.several:
        return _sets(records, target, known.classes)
    return _codes(records, target, known.classes, IGNORE_LABEL)


def votes(records: Records, columns: Sequence[str], classes: Classes) -> Array:
    """Class indices (N, F), -1 where a cell is empty; so is "-1", unless a class is called that.

    Args:
        records: The rows.
        columns: One per function.
        classes: Their names.

    Raises:
        ValueError: A vote for something else.

    Example:
        >>> part = Records("a.csv", pd.DataFrame({"lf_a": ["spam", ""]}), [2, 3], "line")
        >>> votes(part, ["lf_a"], ("ham", "spam")).tolist()
        [[1], [-1]]
    """
    cast = [_codes(records, column, classes, ABSTAIN) for column in columns]
    return np.stack(cast, axis=1)


def _codes(records: Records, column: str, classes: Classes, none: int) -> Array:
    names = class_names(records, column)
    codes = (
        pd.Index(classes, dtype=object).get_indexer(pd.Index(names, dtype=object)).astype(np.int64)
    )
    empty = names == ""
    if none == ABSTAIN:
        empty |= (names == str(ABSTAIN)) & (codes < 0)
    codes[empty] = none
    wrong = (codes < 0) & ~empty
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Expected one of the classes {list(classes[:8])} in {records.where(row, column)}, got "
            f"{names[row]!r}; {_nearest(names[row], classes)}."
        )
    return codes


def _nearest(name: str, classes: Classes) -> str:
    close = difflib.get_close_matches(name, classes, n=1, cutoff=0.4)
    return f"did you mean {close[0]!r}" if close else "name all of them in `classes`"


def _flags(records: Records, target: Any, classes: Classes) -> Array:
    if set(target) != set(classes):
        raise ValueError(
            f"Expected one 0/1 column per class {list(classes[:8])} in {records.file}, got "
            f"{list(target)[:8]}; a pattern such as 'label_*' leaves the class as the `*`."
        )
    matrix = np.empty((len(records), len(classes)), dtype=np.float32)
    for place, name in enumerate(classes):
        cells = class_names(records, target[name])
        for row, cell in enumerate(cells):
            if cell not in _FLAGS:
                raise ValueError(
                    f"Expected 0, 1 or nothing in {records.where(row, target[name])}, got {cell!r}."
                )
            matrix[row, place] = _FLAGS[cell]
    return matrix


def _sets(records: Records, column: str, classes: Classes) -> Array:
    places = {name: place for place, name in enumerate(classes)}
    matrix = np.zeros((len(records), len(classes)), dtype=np.float32)
    for row, cell in enumerate(records.cells[column]):
        if not isinstance(cell, list):
            if class_name(cell) != "":
                raise ValueError(
                    f"Expected a list of classes in {records.where(row, column)}, as in other "
                    f"rows, got {cell!r:.40}."
                )
            matrix[row] = np.nan
            continue
        for item in cell:
            name = class_name(item)
            if name not in places:
                raise ValueError(
                    f"Expected a list of some of the classes {list(classes[:8])} in "
                    f"{records.where(row, column)}, got {item!r:.40} in it; "
                    f"{_nearest(str(item), classes)}."
                )
            matrix[row, places[name]] = 1
    return matrix

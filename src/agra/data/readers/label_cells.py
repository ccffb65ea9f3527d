"""Cells of a table to labels: class indices, votes, or a 0/1 matrix for several labels per row."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from agra.data.parts import ABSTAIN
from agra.data.readers.cells import Array, class_name, class_names
from agra.data.readers.columns import Layout, Target
from agra.data.readers.records import Records
from agra.labels import IGNORE_LABEL

Classes = tuple[str, ...]

_FLAGS = {"": np.nan, "0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1}


class Survey(NamedTuple):
    """What the labels of a table are.

    Attributes:
        classes: Their names, in order.
        several: Whether a row may have several.
    """

    classes: Classes
    several: bool


def given_classes(classes: Sequence[Any]) -> Classes:
    """Classes as the user names them.

    Args:
        classes: Strings or numbers.

    Raises:
        ValueError: None, one twice, or something else.

    Example:
        >>> given_classes([0, 1])
        ('0', '1')
    """
    names = [] if isinstance(classes, str) else [class_name(name) for name in classes]
    known = tuple(name for name in names if name)
    if not known or len(set(known)) < len(names):
        raise ValueError(f"Expected `classes` to be different names or numbers, got {classes!r}.")
    return known


def in_order(names: Iterable[str]) -> Classes:
    """Sorted by number where all are numbers, else by letter.

    Example:
        >>> in_order({"10", "9"}), in_order({"spam", "9", "10"})
        (('9', '10'), ('10', '9', 'spam'))
    """
    try:
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(names))


def survey(parts: Iterable[Records], layout: Layout) -> Survey:
    """The classes of a table, as its labels name them; without labels, as its votes do.

    Args:
        parts: All of its rows.
        layout: Its columns.

    Raises:
        ValueError: No label at all.

    Example:
        >>> from agra.data.readers.columns import USUAL
        >>> cells = pd.DataFrame({"text": ["a", "b"], "label": ["10", "9"]})
        >>> layout = Layout.of("a.csv", list(cells), USUAL, None)
        >>> survey([Records("a.csv", cells, [2, 3], "line")], layout)
        Survey(classes=('9', '10'), several=False)
    """
    if isinstance(layout.label, Mapping):
        return Survey(tuple(layout.label), several=True)
    named: set[str] = set()
    cast: set[str] = set()
    several, file = False, ""
    for records in parts:
        file = records.file
        several |= has_several(records, layout)
        for target in (layout.label, layout.true_label):
            if isinstance(target, str):
                named |= _named(records, target)
        if not named:
            cast |= {name for column in layout.votes for name in class_names(records, column)}
    found = (named or cast - {str(ABSTAIN)}) - {""}
    if not found:
        raise ValueError(f"Expected labels or votes in {file}, got empty cells only.")
    return Survey(in_order(found), several)


def has_several(records: Records, layout: Layout) -> bool:
    """Whether these rows have several labels: a column per class, or lists in a column.

    Args:
        records: Some rows.
        layout: Their columns.

    Example:
        >>> from agra.data.readers.columns import USUAL
        >>> cells = pd.DataFrame({"text": ["a", "b"], "label": [["warm", "wet"], None]})
        >>> part = Records("days.jsonl", cells, [1, 2], "line")
        >>> has_several(part, Layout.of("days.jsonl", list(cells), USUAL, None))
        True
    """
    targets = [target for target in (layout.label, layout.true_label) if target]
    return any(not isinstance(each, str) or _has_lists(records, each) for each in targets)


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


def _has_lists(records: Records, column: str) -> bool:
    return any(isinstance(cell, list) for cell in records.cells[column])


def _named(records: Records, column: str) -> set[str]:
    if not _has_lists(records, column):
        return set(class_names(records, column))
    cells = (cell if isinstance(cell, list) else [cell] for cell in records.cells[column])
    return {name for cell in cells for name in map(class_name, cell) if name}

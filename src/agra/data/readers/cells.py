"""Cells of a table to inputs, ids and class names, every refusal with its file, line and column."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from agra.data.readers.records import Records

Array = np.ndarray[Any, Any]
Empty = Literal["refuse", "keep"]


def is_blank(cell: Any) -> bool:
    """Whether a cell holds nothing.

    Example:
        >>> [is_blank(cell) for cell in (None, " ", float("nan"), 0)]
        [True, True, True, False]
    """
    if isinstance(cell, str):
        return not cell or cell.isspace()
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def texts(records: Records, column: str, empty: Empty) -> list[str]:
    """A text per row.

    Args:
        records: The rows.
        column: Which of their cells.
        empty: "keep" lets empty texts pass.

    Raises:
        ValueError: A cell that holds no text.

    Example:
        >>> part = Records("mails.csv", pd.DataFrame({"text": ["=free money"]}), [2], "line")
        >>> texts(part, "text", "refuse")
        ['=free money']
    """
    cells = records.cells[column].tolist()
    for row, cell in enumerate(cells):
        if is_blank(cell):
            if empty == "refuse":
                raise ValueError(
                    f"Expected a text in {records.where(row, column)}, got an empty one; pass "
                    'empty="keep" to keep it.'
                )
            cells[row] = cell or ""
        elif not isinstance(cell, str):
            raise ValueError(
                f"Expected a text in {records.where(row, column)}, got {type(cell).__name__}."
            )
    return cells


def numbers(records: Records, columns: Sequence[str], empty: Empty) -> Array:
    """Features in single precision: (N, D).

    Args:
        records: The rows.
        columns: One per feature.
        empty: "keep" turns empty cells into NaN.

    Raises:
        ValueError: A cell that holds no finite number.

    Example:
        >>> part = Records("sizes.csv", pd.DataFrame({"a": ["1"], "b": ["2.5"]}), [2], "line")
        >>> numbers(part, ["a", "b"], "refuse").tolist()
        [[1.0, 2.5]]
    """
    features = np.empty((len(records), len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        cells = records.cells[column]
        plain = cells.map(_numeric)
        with np.errstate(over="ignore"):  # refused below
            features[:, place] = pd.to_numeric(plain, errors="coerce").to_numpy(np.float32)
        wrong = ~np.isfinite(features[:, place])
        if empty == "keep" and wrong.any():
            wrong &= ~cells.map(is_blank).to_numpy(bool)
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"Expected a finite number in {records.where(row, column)}, got "
                f"{cells.iloc[row]!r:.40}; name a column of texts with `Columns(text=...)`, leave "
                'columns out with `Columns(ignore=...)`, or pass empty="keep" for NaN.'
            )
    return features


def _numeric(cell: Any) -> str | float | None:
    if isinstance(cell, int) and abs(cell) > 2**1000:  # more than pandas can take
        return None
    return cell if isinstance(cell, str | int | float) else None


def class_names(records: Records, column: str) -> Array:
    """The name of a class per row, "" where there is none.

    Args:
        records: The rows.
        column: Which of their cells; whole numbers are named without a point.

    Raises:
        ValueError: A cell that holds no name.

    Example:
        >>> part = Records("a.jsonl", pd.DataFrame({"label": [2.0, None]}), [1, 2], "line")
        >>> class_names(part, "label").tolist()
        ['2', '']
    """
    cells = records.cells[column]
    names = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        name = class_name(cell)
        if name is None:
            raise ValueError(
                f"Expected the name of a class in {records.where(row, column)}, got "
                f"{type(cell).__name__}."
            )
        names[row] = name
    return names


def class_name(cell: Any) -> str | None:
    """A string or a number as the name of a class; None for anything else.

    Example:
        >>> class_name(3.0), class_name("3.0"), class_name([3])
        ('3', '3.0', None)
    """
    if isinstance(cell, str):
        return "" if cell.isspace() else cell
    if is_blank(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell) if isinstance(cell, bool | int | float | np.number) else None


def row_ids(records: Records, column: str | None, start: int) -> Array:
    """One id per row: whole numbers where all are, else texts.

    Args:
        records: The rows.
        column: Which of their cells; None numbers them.
        start: The first of these numbers.

    Raises:
        ValueError: An empty id, or one that two rows have.

    Example:
        >>> part = Records("mails.csv", pd.DataFrame({"id": ["007", "8"]}), [2, 3], "line")
        >>> row_ids(part, "id", 0).tolist(), row_ids(part, None, 5).tolist()
        (['007', '8'], [5, 6])
    """
    if column is None:
        return np.arange(start, start + len(records))
    cells = records.cells[column]
    ids = class_names(records, column)
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        earlier = first.setdefault(name, row)
        if not name or earlier != row:
            other = f"{name!r}, which {records.unit} {records.places[earlier]} has"
            raise ValueError(
                f"Expected an id of its own in {records.where(row, column)}, got "
                f"{other if name else 'none'}."
            )
    whole = all(type(cell) is int and abs(cell) < 2**63 for cell in cells)
    return np.array(cells.tolist(), dtype=np.int64) if whole else ids

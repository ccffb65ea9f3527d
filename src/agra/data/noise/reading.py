"""Files of labels that noise is put into."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from agra.data.parts import Array
from agra.data.readers.arrays import read_array, whole_numbers
from agra.data.readers.rows import csv_rows
from agra.data.readers.text_files import open_text
from agra.labels import IGNORE_LABEL

_WHOLE = re.compile(r"[+-]?\d{1,18}")


@dataclass(frozen=True, eq=False)
class LabelFile:
    """Labels out of a file.

    Attributes:
        ids: One per row.
        codes: (N,) places in the classes, ``IGNORE_LABEL`` for none.
        classes: All names that occur, sorted: by number if all are whole numbers.
    """

    ids: list[str]
    codes: Array
    classes: tuple[str, ...]


def read_labels(path: Path, column: str = "label") -> LabelFile:
    r"""Labels out of a .csv with a header, or out of a .npy or .txt of whole numbers, one per row.

    An empty cell, or -100, is no label. Rows are numbered from 0, unless a CSV has a column `id`.

    Raises:
        ValueError: Anything else; the message names file, line and column.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "labels.csv")
        ...     _ = path.write_text("id,label\na,spam\nb,ham\nc,\n")
        ...     labels = read_labels(path)
        >>> labels.classes, labels.codes.tolist()
        (('ham', 'spam'), [1, 0, -100])
    """
    ending = path.suffix.lower()
    if ending == ".csv":
        ids, names = _csv_columns(path, column)
    elif ending == ".npy":
        ids, names = None, _array_names(path)
    elif ending == ".txt":
        ids, names = None, _text_names(path)
    else:
        raise ValueError(
            f"Expected a file of labels to end in .csv, .npy or .txt, got {path.name}."
        )
    if not names:
        raise ValueError(f"Expected {path.name} to hold labels, got no rows.")
    none = {"", str(IGNORE_LABEL)}
    present = set(names) - none
    numbers = all(map(_WHOLE.fullmatch, present))
    classes = tuple(sorted(present, key=lambda name: (int(name) if numbers else 0, name)))
    place = {name: k for k, name in enumerate(classes)} | dict.fromkeys(none, IGNORE_LABEL)
    codes = np.array([place[name] for name in names], dtype=np.int64)
    return LabelFile(ids or [str(row) for row in range(len(names))], codes, classes)


def _csv_columns(path: Path, column: str) -> tuple[list[str] | None, list[str]]:
    lines = list(csv_rows(path))
    header = lines.pop(0)[1] if lines else []
    if header.count(column) != 1:
        close = get_close_matches(column, header, n=1)
        hint = f"; did you mean {close[0]!r}?" if close and close[0] != column else "."
        raise ValueError(
            f"Expected one column {column!r} in {path.name}, got the columns {header[:8]}{hint}"
        )
    names = [cells[header.index(column)] for _, cells in lines]
    if "id" not in header:
        return None, names
    ids: dict[str, None] = {}
    for line, cells in lines:
        name = cells[header.index("id")]
        if name in ids:
            raise ValueError(
                f"Expected every `id` in {path.name} once, got {name!r} again in line {line}."
            )
        ids[name] = None
    return list(ids), names


def _array_names(path: Path) -> list[str]:
    array = whole_numbers(read_array(path, "labels")[0], "labels")
    if array.ndim != 1:
        raise ValueError(
            f"Expected {path.name} to hold one whole number per sample, got shape {array.shape}."
        )
    return [str(number) for number in array.tolist()]


def _text_names(path: Path) -> list[str]:
    with open_text(path, "utf-8") as lines:
        return [_whole(path, number, text.rstrip()) for number, text in enumerate(lines, 1)]


def _whole(path: Path, line: int, text: str) -> str:
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(
            f"Expected a whole number in line {line} of {path.name}, {IGNORE_LABEL} for no label, "
            f"got {text[:40]!r}."
        )
    return str(int(text))

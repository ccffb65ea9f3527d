"""Files that noise is made from: labels, matrices and features."""

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from agra.data.parts import Array
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
        ids, names = None, [_whole(path, *line) for line in enumerate(_text(path).splitlines(), 1)]
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


def read_matrix(path: Path) -> Array:
    r"""Numbers out of a CSV without a header.

    Raises:
        ValueError: A cell that is no number, or rows of different length.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "matrix.csv")
        ...     _ = path.write_text("0.9,0.1\n0,1\n")
        ...     read_matrix(path).tolist()
        [[0.9, 0.1], [0.0, 1.0]]
    """
    rows = []
    for line, cells in _csv_rows(path):
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            raise ValueError(
                f"Expected line {line} of {path.name} to hold numbers, got {cells[:8]}."
            ) from None
    return np.array(rows)


def read_features(path: Path) -> Any:
    """Rows of numbers out of a .npy, or out of the .npz of a SciPy matrix.

    Raises:
        ValueError: Any other content; pickled objects are never loaded.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "features.npy"), np.eye(2))
        ...     read_features(Path(folder, "features.npy")).shape
        (2, 2)
    """
    try:
        if path.suffix.lower() == ".npz":
            return sparse.load_npz(path)
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"Expected {path.name} to hold an array of numbers (.npy) or a SciPy matrix (.npz), "
            f"got what NumPy refuses: {error}"
        ) from None


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"Expected {path.name} to be text in UTF-8, got other bytes in line {line}; save it "
            "in that encoding."
        ) from None


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The last line of every row, and its cells, as many as in the first one."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    width = None
    try:
        for cells in reader:
            width = width or len(cells)
            if len(cells) != width:
                raise ValueError(
                    f"Expected {width} cells in every row of {path.name}, got {len(cells)} in line "
                    f"{reader.line_num}."
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise ValueError(
            f"Expected {path.name} to be comma-separated, got what cannot be read in line "
            f"{reader.line_num}: {error}."
        ) from None


def _csv_columns(path: Path, column: str) -> tuple[list[str] | None, list[str]]:
    lines = list(_csv_rows(path))
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
    array = read_features(path)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"Expected {path.name} to hold one whole number per sample, got {array.dtype} of shape "
            f"{array.shape}."
        )
    return [str(number) for number in array.tolist()]


def _whole(path: Path, line: int, text: str) -> str:
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(
            f"Expected a whole number in line {line} of {path.name}, {IGNORE_LABEL} for no label, "
            f"got {text[:40]!r}."
        )
    return str(int(text))

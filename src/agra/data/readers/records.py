"""Tables in files to cells as they are: CSV, JSON lines and Parquet, whole or in chunks.

CSV goes through Python's own reader, because pandas fills rows that are too short without a word.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from agra.data.readers.text_files import open_text, own_suffix

Row = tuple[int, list[Any]]  # where it starts, and its cells


@dataclass(frozen=True, eq=False)
class Records:
    """Some rows of a table.

    Attributes:
        file: Its name.
        cells: A column of objects per column of the file: texts as they are; numbers, lists and
            None where the format knows them.
        places: The line, or the row, that each of them starts at, counted from 1.
        unit: What the places are.

    Example:
        >>> part = Records("mails.csv", pd.DataFrame({"label": ["spam", "hma"]}), [2, 3], "line")
        >>> part.where(1, "label")
        "mails.csv, line 3, column 'label'"
    """

    file: str
    cells: pd.DataFrame
    places: Sequence[int]
    unit: Literal["line", "row"]

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int, column: str) -> str:
        """The file, line and column of a cell, for messages."""
        return f"{self.file}, {self.unit} {self.places[row]}, column {column!r}"


def read_records(
    path: Path, *, encoding: str = "utf-8", rows: int | None = None
) -> Iterator[Records]:
    r"""The rows of a table, so many at a time.

    Args:
        path: Ends with .csv, .tsv or .jsonl, perhaps with .gz after it, or with .parquet.
        encoding: Of text files.
        rows: In a chunk; None for all in one.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A file of another kind or encoding, without rows, or with a broken row.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "mails.csv")
        ...     _ = path.write_text("text,label\nfree money,spam\nlunch?,ham\n")
        ...     [len(part) for part in read_records(path, rows=1)]
        [1, 1]
    """
    if not path.is_file():
        raise FileNotFoundError(f"Expected `path` to be a file, got {str(path)!r}.")
    kind = own_suffix(path)
    if kind in (".csv", ".tsv"):
        parts = _read_csv(path, encoding, rows)
    elif kind == ".jsonl":
        parts = _read_jsonl(path, encoding, rows)
    elif kind == ".parquet":
        parts = _read_parquet(path, rows)
    else:
        raise ValueError(
            f"Expected `path` to end with .csv, .tsv, .jsonl (or these with .gz) or .parquet, got "
            f"{path.name!r}."
        )
    first = next(parts, None)
    if first is None:
        raise ValueError(f"Expected rows in {path.name}, got none.")
    return chain([first], parts)


def csv_rows(path: Path, encoding: str = "utf-8") -> Iterator[Row]:
    r"""All rows of a CSV file, its header among them, all of one width.

    Args:
        path: Of the file. One called .tsv is separated by tabs; any other by commas, or by
            semicolons or tabs if its first line has no comma.
        encoding: Of the text.

    Raises:
        ValueError: A broken row, or another number of cells than in the first one.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "mails.csv")
        ...     _ = path.write_text('text;label\n"a\nb";spam\n')
        ...     list(csv_rows(path))
        [(1, ['text', 'label']), (2, ['a\nb', 'spam'])]
    """
    with open_text(path, encoding) as text:
        head = text.readline()
        marks = "\t" if own_suffix(path) == ".tsv" else ",;\t"
        mark = next((mark for mark in marks if mark in head), ",")
        reader = csv.reader(chain([head], text), delimiter=mark, strict=True)
        yield from _well_formed(reader, path.name)


def _well_formed(reader: Any, file: str) -> Iterator[Row]:
    width = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"Expected a well-formed record in {file}, line {line}, got one with: {error}; "
                f"close its quotes, and store fields of more than {csv.field_size_limit()} "
                "characters as JSON lines or Parquet."
            ) from error
        if not cells:  # a blank line
            continue
        width = width or len(cells)
        if len(cells) != width:
            raise ValueError(
                f"Expected {width} fields in {file}, line {line}, as in its header, got "
                f"{len(cells)}; put fields that hold a separator in quotes."
            )
        yield line, cells


def _read_csv(path: Path, encoding: str, size: int | None) -> Iterator[Records]:
    rows = csv_rows(path, encoding)
    _, header = next(rows, (0, []))
    _check_header(path.name, header)
    yield from _in_chunks(rows, header, path.name, size)


def _read_jsonl(path: Path, encoding: str, size: int | None) -> Iterator[Records]:
    with open_text(path, encoding) as text:
        objects = _json_objects(text, path.name)
        first = next(objects, None)
        header = [] if first is None else list(first[1])
        _check_header(path.name, header)
        rows = _json_rows(chain([] if first is None else [first], objects), header, path.name)
        yield from _in_chunks(rows, header, path.name, size)


def _json_objects(text: Any, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, content in enumerate(text, start=1):
        if not content.strip():
            continue
        try:
            cells = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"Expected a JSON object in {file}, line {line}, got a line that is no JSON: "
                f"{error}."
            ) from error
        if not isinstance(cells, dict):
            raise ValueError(
                f"Expected a JSON object in {file}, line {line}, got {type(cells).__name__}; write "
                "one object per line."
            )
        yield line, cells


def _json_rows(objects: Any, header: list[str], file: str) -> Iterator[Row]:
    known = set(header)
    for line, cells in objects:
        if not known.issuperset(cells):
            new = next(name for name in cells if name not in known)
            raise ValueError(
                f"Expected the keys of the first line {header[:8]} in {file}, line {line}, got "
                f"{new!r}; write null in the first line where it has no value."
            )
        yield line, [cells.get(name) for name in header]


def _read_parquet(path: Path, size: int | None) -> Iterator[Records]:
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]  # no stubs
    except ImportError as error:
        raise ImportError(
            "Expected pyarrow to be installed, which reads Parquet: pip install 'agra[data]'."
        ) from error
    try:
        with parquet.ParquetFile(path) as table:
            header = [str(name) for name in table.schema_arrow.names]
            _check_header(path.name, header)
            count = max(table.metadata.num_rows, 1)
            start = 1
            for batch in table.iter_batches(min(size or count, count)):
                columns = [column.to_pylist() for column in batch.columns]
                cells = pd.DataFrame(dict(zip(header, columns, strict=True)), dtype=object)
                yield Records(path.name, cells, range(start, start + len(cells)), "row")
                start += len(cells)
    except (OSError, ArrowException) as error:
        raise ValueError(f"Expected {path.name} to be a Parquet file, got: {error}.") from error


def _in_chunks(
    rows: Iterator[Row], header: list[str], file: str, size: int | None
) -> Iterator[Records]:
    while part := list(islice(rows, size)):
        cells = pd.DataFrame([cells for _, cells in part], columns=header, dtype=object)
        yield Records(file, cells, [line for line, _ in part], "line")


def _check_header(file: str, header: list[str]) -> None:
    if not header:
        raise ValueError(f"Expected a header in {file}, got an empty file.")
    twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if twice:
        raise ValueError(
            f"Expected the columns of {file} to be named differently, got {twice[:8]} twice."
        )

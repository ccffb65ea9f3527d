"""Tables in files to cells as they are: CSV, JSON lines and Parquet, whole or in chunks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import pandas as pd

from agra.data.readers.rows import Row, csv_rows, json_rows
from agra.data.readers.text_files import own_suffix
from agra.names import optional

_INDEX = re.compile(r"__index_level_\d+__")  # where pandas keeps a frame's index


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
        parts = _in_chunks(csv_rows(path, encoding), path.name, rows)
    elif kind == ".jsonl":
        parts = _in_chunks(json_rows(path, encoding), path.name, rows)
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


def _read_parquet(path: Path, size: int | None) -> Iterator[Records]:
    parquet = optional("pyarrow.parquet", "data")
    try:
        with parquet.ParquetFile(path) as table:
            names = [str(name) for name in table.schema_arrow.names]
            header = [name for name in names if not _INDEX.fullmatch(name)]
            _check_header(path.name, header)
            count = max(table.metadata.num_rows, 1)
            start = 1
            for batch in table.iter_batches(min(size or count, count), columns=header):
                columns = [batch.column(name).to_pylist() for name in header]
                cells = pd.DataFrame(dict(zip(header, columns, strict=True)), dtype=object)
                yield Records(path.name, cells, range(start, start + len(cells)), "row")
                start += len(cells)
    except (OSError, optional("pyarrow", "data").ArrowException) as error:
        raise ValueError(f"Expected {path.name} to be a Parquet file, got: {error}.") from error


def _in_chunks(rows: Iterator[Row], file: str, size: int | None) -> Iterator[Records]:
    _, header = next(rows, (0, []))
    _check_header(file, header)
    while part := list(islice(rows, size)):
        cells = pd.DataFrame([cells for _, cells in part], columns=header, dtype=object)
        yield Records(file, cells, [line for line, _ in part], "line")


def _check_header(file: str, header: list[str]) -> None:
    if not header:
        raise ValueError(f"Expected a header in {file}, got none.")
    twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if twice:
        raise ValueError(
            f"Expected the columns of {file} to be named differently, got {twice[:8]} twice."
        )

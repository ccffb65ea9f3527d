"""Rows of text files, the header first: CSV and JSON lines.

CSV goes through Python's own reader, because pandas fills rows that are too short without a word.
"""

import csv
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from agra.data.readers.text_files import open_text, own_suffix

Row = tuple[int, list[Any]]  # the line where it starts, and its cells


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
        start = [head]
        while head.isspace():
            start.append(head := text.readline())
        marks = "\t" if own_suffix(path) == ".tsv" else ",;\t"
        mark = next((mark for mark in marks if mark in head), ",")
        reader = csv.reader(chain(start, text), delimiter=mark, strict=True)
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


def json_rows(path: Path, encoding: str = "utf-8") -> Iterator[Row]:
    r"""The keys of the first object in a file of JSON lines, and the values of all in that order.

    Args:
        path: Of the file. A key that a later object leaves out counts as null.
        encoding: Of the text.

    Raises:
        ValueError: A line that holds no object, or one with a key that the first has not.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "mails.jsonl")
        ...     _ = path.write_text('{"text": "lunch?", "label": 0}\n{"text": "a prize"}\n')
        ...     list(json_rows(path))
        [(1, ['text', 'label']), (1, ['lunch?', 0]), (2, ['a prize', None])]
    """
    header: list[str] = []
    with open_text(path, encoding) as text:
        for line, content in enumerate(text, start=1):
            if not content.strip():
                continue
            cells = _json_object(content, path.name, line)
            if not header:
                header = list(cells)
                yield line, list(header)
            new = [name for name in cells if name not in header]
            if new:
                raise ValueError(
                    f"Expected the keys of the first line {header[:8]} in {path.name}, line "
                    f"{line}, got {new[:8]} besides; write null where a key has no value."
                )
            yield line, [cells.get(name) for name in header]


def _json_object(content: str, file: str, line: int) -> dict[str, Any]:
    try:
        cells = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"Expected a JSON object in {file}, line {line}, got what is no JSON: {error}."
        ) from error
    if not isinstance(cells, dict):
        raise ValueError(
            f"Expected one JSON object per line in {file}, got {type(cells).__name__} in line "
            f"{line}."
        )
    return cells

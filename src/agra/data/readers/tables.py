"""Tables to data sets: CSV, JSON lines and Parquet, whole or as a stream of chunks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from agra.data.dataset import NoisyDataset
from agra.data.readers.cells import Empty, numbers, row_ids, texts
from agra.data.readers.classes import Survey, given_classes, has_several, survey
from agra.data.readers.columns import USUAL, Columns, Layout, Names
from agra.data.readers.image_paths import image_paths
from agra.data.readers.label_cells import labels, votes
from agra.data.readers.records import Records, read_records
from agra.label_models.majority import majority_vote
from agra.names import check_name

__all__ = ["Columns", "TableReader", "read_table", "stream_table"]


def read_table(
    path: str | Path,
    *,
    columns: Columns = USUAL,
    votes: Names | None = None,
    classes: Sequence[Any] | None = None,
    split: str = "train",
    encoding: str = "utf-8",
    empty: Empty = "refuse",
) -> NoisyDataset:
    r"""The data set in a table.

    Args:
        path: Ends with .csv, .tsv or .jsonl, perhaps with .gz after it, or with .parquet.
        columns: What its columns are, where they do not have the usual names.
        votes: The names of the vote columns, ``*`` for anything; usually "lf_*" and "vote_*".
            Without a column of labels, these are the majority of the votes.
        classes: Their names, in order; None for those that the labels name, sorted: by number where
            all are numbers, else by letter.
        split: "train", "valid" or "test".
        encoding: Of text files.
        empty: "refuse" empty texts and features; or "keep" them, as "" and NaN.

    Raises:
        FileNotFoundError: No such file, or no such image.
        ValueError: Whatever is not as described; the message names the file, line and column.
        ImportError: A Parquet file without pyarrow.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "mails.csv")
        ...     _ = path.write_text("text,label\nfree money,spam\nlunch?,ham\nhello,\n")
        ...     data = read_table(path)
        >>> data.classes, data.labels.tolist()
        (('ham', 'spam'), [1, 0, -100])
    """
    reader = TableReader(Path(path), columns, votes, encoding=encoding, empty=empty)
    (records,) = reader.records(None)
    known = reader.survey(iter([records]), classes)
    return reader.data(records, known).replace(split=split)


def stream_table(
    path: str | Path,
    *,
    rows: int = 50_000,
    columns: Columns = USUAL,
    votes: Names | None = None,
    classes: Sequence[Any] | None = None,
    encoding: str = "utf-8",
    empty: Empty = "refuse",
) -> Iterator[NoisyDataset]:
    r"""The same in chunks, one in memory at a time. Together they are what `read_table` reads.

    Without `classes` the file is read twice, first for the names of the classes. Ids that occur
    twice are seen within a chunk only.

    Args:
        path: As for `read_table`.
        rows: In a chunk.
        columns: As for `read_table`.
        votes: As for `read_table`.
        classes: As for `read_table`.
        encoding: As for `read_table`.
        empty: As for `read_table`.

    Raises:
        FileNotFoundError: As `read_table`.
        ValueError: As `read_table`: of the header at once, of a row when its chunk is drawn.
        ImportError: As `read_table`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "mails.csv")
        ...     _ = path.write_text("text,label\nfree money,spam\nlunch?,ham\nhello,\n")
        ...     [chunk.ids.tolist() for chunk in stream_table(path, rows=2)]
        [[0, 1], [2]]
    """
    if rows < 1:
        raise ValueError(f"Expected `rows` to be at least 1 per chunk, got {rows}.")
    reader = TableReader(Path(path), columns, votes, encoding=encoding, empty=empty)
    known = reader.survey(reader.records(rows), classes)
    return _chunks(reader, known, rows)


def _chunks(reader: "TableReader", known: Survey, rows: int) -> Iterator[NoisyDataset]:
    start = 0
    for records in reader.records(rows):
        yield reader.data(records, known, start)
        start += len(records)


@dataclass(frozen=True)
class TableReader:
    """How one table is read; `read_table` and `stream_table` say what its parts mean.

    Attributes:
        path: Of the table.
        columns: What is what.
        votes: The names of the vote columns.
        encoding: Of text files.
        empty: What to do about empty texts and features.
        folder: Where paths of images start; None for the folder of the table.
        check: Is called with every image, to raise a ValueError.

    Example:
        >>> TableReader(Path("mails.csv"), USUAL, None).encoding
        'utf-8'
    """

    path: Path
    columns: Columns
    votes: Names | None
    encoding: str = "utf-8"
    empty: Empty = "refuse"
    folder: Path | None = None
    check: Callable[[Path], object] | None = None

    def __post_init__(self) -> None:
        check_name("empty", self.empty, ["refuse", "keep"])

    def records(self, rows: int | None) -> Iterator[Records]:
        """The rows, so many at a time; None for all."""
        return read_records(self.path, encoding=self.encoding, rows=rows)

    def survey(self, parts: Iterator[Records], classes: Sequence[Any] | None) -> Survey:
        """What the labels are, by all rows; by the first chunk where classes are given."""
        first = next(parts)
        layout = self._layout(first)
        if classes is None:
            return survey(chain([first], parts), layout)
        return Survey(given_classes(classes), has_several(first, layout))

    def data(self, records: Records, known: Survey, start: int = 0) -> NoisyDataset:
        """The data set of some rows, of which the first has the number `start`."""
        layout = self._layout(records)
        cast = votes(records, layout.votes, known.classes) if layout.votes else None
        if layout.label is not None:
            given = labels(records, layout.label, known)
        else:
            given = majority_vote(cast, len(known.classes), first_row=start, uncovered="unlabelled")
        truth = layout.true_label
        return NoisyDataset(
            inputs=self._inputs(records, layout),
            labels=given,
            classes=known.classes,
            true_labels=None if truth is None else labels(records, truth, known),
            votes=cast,
            functions=layout.votes,
            ids=row_ids(records, layout.id, start),
            name=self.path.name.removesuffix(".gz").rpartition(".")[0],
        )

    def _layout(self, records: Records) -> Layout:
        return Layout.of(
            records.file, [str(name) for name in records.cells], self.columns, self.votes
        )

    def _inputs(self, records: Records, layout: Layout) -> Any:
        if layout.kind == "features":
            return numbers(records, layout.inputs, self.empty)
        (column,) = layout.inputs
        if layout.kind == "text":
            return texts(records, column, self.empty)
        return image_paths(records, column, self.folder or self.path.parent, self.check)

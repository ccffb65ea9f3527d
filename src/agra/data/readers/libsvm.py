"""LIBSVM files to data sets: per line a label, or several, and the features that are not zero."""

import io
from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.datasets import load_svmlight_file

from agra.data.dataset import NoisyDataset
from agra.data.readers.arrays import check_finite, whole_numbers
from agra.data.readers.cells import class_name
from agra.data.readers.classes import Survey, given_classes, in_order
from agra.data.readers.label_cells import labels
from agra.data.readers.records import Records


def read_libsvm(
    path: str | Path,
    *,
    several: bool = False,
    num_features: int | None = None,
    classes: Sequence[Any] | None = None,
    split: str = "train",
) -> NoisyDataset:
    r"""The data set in a LIBSVM file, with CSR rows as inputs.

    Args:
        path: Of the file; it may be compressed and end with .gz or .bz2.
        several: Whether the lines begin with several labels, separated by commas.
        num_features: D; None for what the file shows. Give that of the training split to others.
        classes: The numbers that the labels are, in order; None for those in the file, sorted.
        split: "train", "valid" or "test".

    Raises:
        FileNotFoundError: No such file.
        ValueError: A broken line, a label that is no whole number, or that is not in `classes`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "train.txt")
        ...     _ = path.write_text("-1 1:0.5 3:2\n+1 2:1\n")
        ...     data = read_libsvm(path)
        >>> data.classes, data.labels.tolist(), data.inputs.shape
        (('-1', '1'), [0, 1], (2, 3))
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"Expected `path` to be a LIBSVM file, got {str(path)!r}.")
    try:
        features, given = load_svmlight_file(str(path), multilabel=several, n_features=num_features)
    except (ValueError, OSError, EOFError) as error:
        line = _broken_line(path, several, num_features)
        raise ValueError(
            f"Expected {path.name} to be a LIBSVM file, got {line}: {str(error).rstrip('.')}."
        ) from error
    if not len(given):
        raise ValueError(f"Expected {path.name} to hold lines with labels, got none.")
    if not several:
        given = whole_numbers(given, f"labels of {path.name}").tolist()
    cells = [list(each) if several else each for each in given]
    records = Records(
        path.name, pd.DataFrame({"label": cells}, dtype=object), range(1, len(cells) + 1), "row"
    )
    names = {str(class_name(label)) for label in chain(*(cells if several else [cells]))}
    known = in_order(names) if classes is None else given_classes(classes)
    return NoisyDataset(
        inputs=check_finite(features, path.name),
        labels=labels(records, "label", Survey(known, several)),
        classes=known,
        split=split,
        name=path.name.split(".")[0],
    )


def _broken_line(path: Path, several: bool, num_features: int | None) -> str:
    """The first line that scikit-learn, which names none, cannot read."""
    if path.suffix in (".gz", ".bz2"):
        return "a broken line"
    lines = path.read_bytes().splitlines(keepends=True)

    def fails(count: int) -> bool:
        start = io.BytesIO(b"".join(lines[:count]))
        try:
            load_svmlight_file(start, multilabel=several, n_features=num_features)
        except ValueError:
            return True
        return False

    return f"line {bisect_left(range(1, len(lines) + 1), True, key=fails) + 1}"

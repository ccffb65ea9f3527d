"""Whether what lies in a data home is what the catalog says."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from agra.data.catalog import CATALOG, load_dataset
from agra.data.catalog.entry import Counts, File, Splits
from agra.data.catalog.files import present
from agra.data.dataset import NoisyDataset
from agra.data.home import data_home, inside
from agra.names import check_name


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was found of one data set.

    Attributes:
        name: Of the set.
        state: "ok"; "wrong"; "incomplete" if what is there is right; or "not there".
        files: How many files were checked.
        rows: In all splits; None if it was not loaded.
        problems: What is wrong or missing, a sentence each.
    """

    name: str
    state: Literal["ok", "wrong", "incomplete", "not there"]
    files: int
    rows: int | None
    problems: tuple[str, ...]


def verify(name: str, home: str | Path | None = None) -> Verdict:
    """Check a set's files (size, SHA-256) and, if all are there, what they contain.

    Nothing is downloaded.

    Raises:
        ValueError: An unknown name.

    Example:
        >>> verify("digits").state
        'ok'
    """
    entry = CATALOG[check_name("name", name, CATALOG)]
    root = data_home(home) if entry.files else Path()
    found = [hit for file in entry.files if (hit := present(root, file)) is not None]
    missing = [
        str(inside(root, file.path))
        for file in entry.files
        if not file.optional and present(root, file) is None
    ]
    problems = [problem for file, path in found if (problem := _damage(file, path))]
    rows = None
    if not problems and not missing:
        try:
            splits = load_dataset(name, home=home, download=False)
        except (ValueError, OSError) as error:
            problems = [str(error)]
        else:
            rows = sum(map(len, splits.values()))
            problems = discrepancies(entry.counts, splits)
    state: Literal["ok", "wrong", "incomplete", "not there"] = "ok"
    if problems:
        state = "wrong"
    elif missing:
        state = "incomplete" if found else "not there"
    return Verdict(
        name=name,
        state=state,
        files=len(found),
        rows=rows,
        problems=(*problems, *(f"{path} is not there." for path in missing)),
    )


def discrepancies(counts: Counts, splits: Splits) -> list[str]:
    """Where a loaded set differs from its counts, a sentence each.

    Example:
        >>> data = NoisyDataset(inputs=[[1.0]], labels=[0], classes=["a", "b"])
        >>> discrepancies(Counts(rows={"train": 2}, classes=2), {"train": data})
        ['Expected 2 rows in train, got 1.']
    """
    found = []
    for key, rows in counts.rows.items():
        names = key.split(" + ")
        got = sum(len(splits[name]) for name in names if name in splits)
        if got != rows:
            found.append(f"Expected {rows} rows in {key}, got {got}.")
    train = splits["train"]
    if len(train.classes) != counts.classes:
        found.append(f"Expected {counts.classes} classes, got {len(train.classes)}.")
    if counts.wrong is not None and (got := int(train.wrong.sum())) != counts.wrong:
        found.append(f"Expected {counts.wrong} wrong labels in train, got {got}.")
    if counts.given and (given := _given(train)) != list(counts.given):
        found.append(f"Expected {list(counts.given)} labels by class in train, got {given}.")
    return found


def _given(train: NoisyDataset) -> list[int]:
    if train.several:
        return [int(count) for count in np.nansum(train.labels, axis=0)]
    labels = train.labels[train.labelled]
    return np.bincount(labels, minlength=len(train.classes)).tolist()


def _damage(file: File, path: Path) -> str | None:
    """What is wrong with a file's bytes."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"Expected {path} to have {file.size} bytes, got {size}."
    if file.sha256 is None:
        return None
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != file.sha256:
        return f"Expected {path} to have the SHA-256 {file.sha256}, got {digest}."
    return None

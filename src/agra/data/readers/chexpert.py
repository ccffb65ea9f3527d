"""CheXpert's folder: chest radiographs with labels that a program read from reports."""

import csv
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agra.data.dataset import NoisyDataset
from agra.data.home import inside

Array = np.ndarray[Any, Any]

PATHOLOGIES = (  # the 14 observations without "No Finding" and "Support Devices"
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
)
CODES = {"1.0": 1, "1": 1, "-1.0": 1, "-1": 1, "0.0": 0, "0": 0, "": 0}
VALID_SHARE = 22_815 / 223_414  # of the training rows, as in the paper


def read_chexpert(
    folder: str | Path, *, seed: int = 0, valid_share: float = VALID_SHARE
) -> dict[str, NoisyDataset]:
    r"""The three splits, with the paths of the images as inputs and 12 pathologies as labels.

    Uncertain (-1) counts as present, not mentioned (blank) as absent. Some of the training
    patients, all rows of each, are held out for validation; the test split is what was published
    for validation, labelled by radiologists. Only it has true labels.

    Args:
        folder: Holds ``train.csv``, ``valid.csv`` and the folders of images named in them.
        seed: Of the draw of validation patients.
        valid_share: Of the training rows to hold out; as near as whole patients allow, from below.

    Raises:
        FileNotFoundError: A table is missing.
        ValueError: A missing column, a value that is none of these, a path without a patient or
            out of the folder, or a share outside of (0, 1).

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> header = ",".join(["Path", *PATHOLOGIES])
        >>> rows = [f"C/train/patient{n}/study1/view1.jpg,1,-1" + "," * 10 for n in range(2)]
        >>> for table in ("train.csv", "valid.csv"):
        ...     _ = (folder / table).write_text("\n".join([header, *rows]))
        >>> splits = read_chexpert(folder, valid_share=0.5)
        >>> {name: len(data) for name, data in splits.items()}
        {'train': 1, 'valid': 1, 'test': 2}
        >>> sorted(splits["valid"].label_names()[0])
        ['Cardiomegaly', 'Enlarged Cardiomediastinum']
    """
    if not 0 < valid_share < 1:
        raise ValueError(f"Expected `valid_share` to be in (0, 1), got {valid_share}.")
    folder = Path(folder)
    paths, labels, patients = _table(folder, "train.csv")
    test_paths, test_labels, _ = _table(folder, "valid.csv")
    held_out = _draw(patients, valid_share, np.random.default_rng(seed))
    given = NoisyDataset(inputs=paths, labels=labels, classes=PATHOLOGIES, name="chexpert")
    return {
        "train": given[~held_out],
        "valid": given[held_out].replace(split="valid"),
        "test": NoisyDataset(
            inputs=test_paths,
            labels=test_labels,
            true_labels=test_labels,
            classes=PATHOLOGIES,
            split="test",
            name="chexpert",
        ),
    }


def _draw(patients: Array, share: float, rng: np.random.Generator) -> Array:
    """Which rows are of the patients that are drawn until their rows exceed the share."""
    codes, counts = np.unique(patients, return_counts=True)
    order = rng.permutation(len(codes))
    taken = order[np.cumsum(counts[order]) <= share * len(patients)]
    return np.isin(patients, codes[taken])


def _table(folder: Path, name: str) -> tuple[list[Path], Array, Array]:
    """Image paths, 0/1 labels and patients of one table."""
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(f"Expected CheXpert's table {path}, got no such file.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = [*csv.reader(file)] or [[]]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"Expected {path} to be CheXpert's CSV table: {error}.") from None
    for column in ("Path", *PATHOLOGIES):
        if column not in header:
            near = difflib.get_close_matches(column, header, n=1, cutoff=0)
            raise ValueError(
                f"Expected a column {column!r} in {path}, got none; the nearest is {near}."
            )
    for row, fields in enumerate(rows):
        if len(fields) != len(header):
            raise ValueError(
                f"Expected {len(header)} fields in line {row + 2} of {path}, got {len(fields)}."
            )
    columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    labels = [_codes(path, column, columns.get(column, ())) for column in PATHOLOGIES]
    images = [_image(folder, path, row, value) for row, value in enumerate(columns.get("Path", ()))]
    patients = np.array([patient for _, patient in images], dtype=str)
    return [image for image, _ in images], np.array(labels, dtype=np.float32).T, patients


def _codes(path: Path, column: str, values: Sequence[str]) -> list[int | None]:
    codes = [CODES.get(value) for value in values]
    if None in codes:
        row = codes.index(None)
        raise ValueError(
            f"Expected {column!r} in line {row + 2} of {path} to be 1, 0, -1 or blank, got "
            f"{values[row]!r}."
        )
    return codes


def _image(folder: Path, path: Path, row: int, value: str) -> tuple[Path, str]:
    """The image below the folder, whatever folder it was published in, and its patient."""
    parts = value.split("/")
    start = next((n for n, part in enumerate(parts) if part in ("train", "valid")), None)
    if start is None or start + 2 >= len(parts) or not parts[start + 1].startswith("patient"):
        raise ValueError(
            f"Expected `Path` in line {row + 2} of {path} to be as in "
            f"'train/patient00001/study1/view1_frontal.jpg', got {value!r}."
        )
    return inside(folder, "/".join(parts[start:])), parts[start + 1]

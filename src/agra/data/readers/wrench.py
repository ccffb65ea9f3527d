"""Folders of the WRENCH benchmark's JSON format: texts with votes of labelling functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agra.data.dataset import NoisyDataset
from agra.data.readers.json_files import read_json
from agra.label_models.majority import majority_vote
from agra.label_models.votes import ABSTAIN
from agra.labels import IGNORE_LABEL
from agra.names import check_name

UNKNOWN = -1  # WRENCH's `label` of a row without one


def read_wrench(
    folder: str | Path,
    split: str = "train",
    *,
    classes: Sequence[str] | None = None,
    name: str = "",
) -> NoisyDataset:
    """One split. In training, the labels are the majority of the votes; elsewhere the true ones.

    Args:
        folder: Holds ``train.json``, ``valid.json``, ``test.json``; ``label.json``, the names of
            the classes, and optionally ``lfs.json``, those of the functions.
        split: "train", "valid" or "test".
        classes: Names of the classes, instead of those in ``label.json``.
        name: Of the data set; by default the folder's.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A split of another name; a file that is not JSON or not of this format, with
            row and function where there is one.

    Example:
        >>> import json, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> row = {"label": 1, "weak_labels": [0, 0, -1], "data": {"text": "free money"}}
        >>> _ = (folder / "train.json").write_text(json.dumps({"0": row}))
        >>> data = read_wrench(folder, classes=["ham", "spam"])
        >>> data.label_names().tolist(), data.noise_rate
        (['ham'], 1.0)
    """
    folder = Path(folder)
    check_name("split", split, ["train", "valid", "test"])
    names = list(classes) if classes is not None else _class_names(folder / "label.json")
    path = folder / f"{split}.json"
    rows = read_json(path)
    if not isinstance(rows, dict) or not rows:
        raise ValueError(f"Expected {path} to be an object with one entry per row, got none.")
    texts, votes, labels = _columns(path, rows, len(names))
    known = np.where(np.array(labels) == UNKNOWN, IGNORE_LABEL, labels)
    return NoisyDataset(
        inputs=texts,
        labels=majority_vote(votes, len(names)) if split == "train" else known,
        true_labels=known,
        classes=names,
        votes=votes,
        functions=_function_names(folder / "lfs.json", votes.shape[1]),
        ids=[int(key) for key in rows] if all(map(str.isdecimal, rows)) else list(rows),
        split=split,
        name=name or folder.name,
    )


def _class_names(path: Path) -> list[str]:
    names = read_json(path)
    if not isinstance(names, dict) or set(names) != {str(code) for code in range(len(names))}:
        raise ValueError(
            f"Expected {path} to name the classes from '0' upwards, got {str(names)[:60]}."
        )
    return [str(names[str(code)]) for code in range(len(names))]


def _function_names(path: Path, count: int) -> list[str]:
    """The functions' names where each has one; regular expressions are numbered instead."""
    if not path.is_file():
        return []
    entries = read_json(path)
    if not isinstance(entries, list) or len(entries) != count:
        raise ValueError(f"Expected {path} to list the {count} functions that voted, got others.")
    names = [str(entry["name"]) for entry in entries if "name" in entry]
    return names if len(set(names)) == count else []


def _columns(
    path: Path, rows: dict[str, Any], num_classes: int
) -> "tuple[list[str], np.ndarray[Any, Any], list[int]]":
    """Texts, votes (N, F) and labels, once each of them is found to be one."""
    texts: list[str] = []
    votes: list[list[int]] = []
    labels: list[int] = []
    for key, row in rows.items():
        try:
            text, cast, label = row["data"]["text"], row["weak_labels"], row["label"]
        except (KeyError, TypeError):
            raise ValueError(
                f"Expected row {key} of {path} to have `label`, `weak_labels` and `data` with a "
                f"`text`, got {str(row)[:60]}."
            ) from None
        if not isinstance(text, str):
            raise ValueError(f"Expected the text in row {key} of {path}, got {text!r}.")
        if not _is_code(label, UNKNOWN, num_classes):
            raise ValueError(
                f"Expected `label` in row {key} of {path} to be in [0, {num_classes - 1}], or "
                f"{UNKNOWN} if unknown, got {label!r}."
            )
        _check_votes(f"row {key} of {path}", cast, num_classes)
        if votes and len(cast) != len(votes[0]):
            raise ValueError(
                f"Expected `weak_labels` in row {key} of {path} to be as many as in the first "
                f"row ({len(votes[0])}), got {len(cast)}."
            )
        texts.append(text)
        votes.append(cast)
        labels.append(label)
    return texts, np.array(votes, dtype=np.int64).reshape(len(votes), -1), labels


def _check_votes(where: str, cast: Any, num_classes: int) -> None:
    if not isinstance(cast, list):
        raise ValueError(f"Expected `weak_labels` in {where} to be a list, got {cast!r}.")
    for function, vote in enumerate(cast):
        if not _is_code(vote, ABSTAIN, num_classes):
            raise ValueError(
                f"Expected the vote of function {function} in {where} to be in "
                f"[0, {num_classes - 1}], or {ABSTAIN} for none, got {vote!r}."
            )


def _is_code(value: Any, lowest: int, num_classes: int) -> bool:
    return type(value) is int and lowest <= value < num_classes  # not bool, which is an int, too

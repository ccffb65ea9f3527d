"""Hashes of what an encoding depends on: the rows, and the files of a model."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from agra.data.dataset import NoisyDataset

Array = np.ndarray[Any, Any]


def data_fingerprint(data: NoisyDataset, *, labels: bool = False) -> dict[str, str]:
    """The hashes of a data set's ids and inputs, and of its labels where they matter.

    Args:
        data: Texts, paths (whose files are read) or an array.
        labels: Whether they matter.

    Raises:
        FileNotFoundError: A path without a file; the message names the row.

    Example:
        >>> texts = NoisyDataset(inputs=["a", "b"], labels=[0, 1], classes=("no", "yes"))
        >>> sorted(data_fingerprint(texts))
        ['ids', 'inputs']
    """
    ids = (json.dumps(value, default=str).encode() for value in data.ids.tolist())
    found = {"ids": items_hash(ids), "inputs": _inputs_hash(data)}
    if labels:
        classes = json.dumps(list(data.classes)).encode()
        found["labels"] = items_hash([classes, array_hash(data.labels).encode()])
    return found


def _inputs_hash(data: NoisyDataset) -> str:
    if data.kind == "texts":
        return items_hash(text.encode("utf-8", "surrogatepass") for text in data.inputs)
    if data.kind == "paths":
        return items_hash(_path_identity(path, row, data) for row, path in enumerate(data.inputs))
    return array_hash(data.inputs)


def _path_identity(path: Path, row: int, data: NoisyDataset) -> bytes:
    try:
        return json.dumps([str(path), path.stat().st_size, file_hash(path)]).encode()
    except OSError as error:
        raise FileNotFoundError(
            f"Expected a readable file in row {row} of the {data.split} split, got {str(path)!r} "
            f"({error.strerror})."
        ) from error


def items_hash(items: Iterable[bytes]) -> str:
    """The SHA-256 of some byte strings, each with its length, so that none runs into the next."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(len(item).to_bytes(8, "little"))
        digest.update(item)
    return digest.hexdigest()


def array_hash(array: Array) -> str:
    """The SHA-256 of an array's type, shape and numbers."""
    digest = hashlib.sha256(json.dumps([array.dtype.str, array.shape]).encode())
    for row in np.split(array, range(1024, len(array), 1024)):  # copies of a part at a time
        digest.update(np.ascontiguousarray(row).data)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Encoded splits as one file that NumPy reads, and a manifest beside it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from agra.data.dataset import NoisyDataset
from agra.encode.cache import csr_parts
from agra.encode.fingerprint import file_hash
from agra.files import whole_file

FORMAT, VERSION = "agra-features", 1


def save_encoded(
    splits: Mapping[str, NoisyDataset],
    path: str | os.PathLike[str],
    *,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write encoded splits, and beside them a JSON file of the same name that describes them.

    The arrays are ``train_x`` (for CSR rows ``train_x_data``, ``_indices``, ``_indptr`` and
    ``_shape``), ``train_labels``, ``train_true_labels`` where known, ``train_ids``, and the same of
    the other splits; and ``classes``.

    Args:
        splits: With numbers as inputs.
        path: Of the file, which ends in .npz.
        about: What else the manifest shall say, for JSON.

    Raises:
        ValueError: Another ending, splits of different classes, or none.
        TypeError: Inputs that are not numbers.

    Example:
        >>> import tempfile
        >>> data = NoisyDataset(inputs=np.eye(2), labels=[0, 1], classes=("a", "b"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_encoded({"train": data}, f"{folder}/rows.npz")
        ...     load_encoded(f"{folder}/rows.npz")
        {'train': <NoisyDataset train: 2 numbers, 2 classes>}
    """
    target = Path(path)
    if target.suffix != ".npz":
        raise ValueError(f"Expected `path` to end in .npz, got {str(path)!r}.")
    classes = {data.classes for data in splits.values()}
    if len(classes) != 1:
        raise ValueError(
            f"Expected `splits` to have the same classes, got {len(classes)} different ones."
        )
    arrays: dict[str, Any] = {"classes": np.array(next(iter(classes)))}
    for name, data in splits.items():
        arrays |= {f"{name}_{part}": array for part, array in _arrays(data).items()}
    with whole_file(target) as draft, draft.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "name": next(iter(splits.values())).name,
        "splits": {name: {"shape": list(data.inputs.shape)} for name, data in splits.items()},
        "sha256": file_hash(target),
        **(about or {}),
    }
    with whole_file(_manifest(target)) as draft:
        draft.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def load_encoded(path: str | os.PathLike[str]) -> dict[str, NoisyDataset]:
    """The splits that `save_encoded` wrote.

    Raises:
        ValueError: The file is not the one that its manifest describes.
        FileNotFoundError: There is no such file, or no manifest beside it.
    """
    source = Path(path)
    manifest = _read_manifest(source)
    if manifest.get("format") != FORMAT or manifest.get("sha256") != file_hash(source):
        raise ValueError(
            f"Expected {str(path)!r} to be as its manifest says, got another or a damaged file; "
            "encode the data again."
        )
    with np.load(source, allow_pickle=False) as stored:
        arrays = dict(stored)
    classes = arrays["classes"].tolist()
    return {
        split: NoisyDataset(
            inputs=_rows(arrays, f"{split}_x"),
            labels=arrays[f"{split}_labels"],
            true_labels=arrays.get(f"{split}_true_labels"),
            ids=arrays[f"{split}_ids"],
            classes=classes,
            split=split,
            name=manifest["name"],
        )
        for split in manifest["splits"]
    }


def _manifest(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _read_manifest(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"Expected encoded splits in {str(path)!r}, got no such file.")
    try:
        manifest = json.loads(_manifest(path).read_bytes())
        return manifest if isinstance(manifest, dict) else {}
    except ValueError:
        return {}  # which no file fits


def _arrays(data: NoisyDataset) -> dict[str, Any]:
    rows = data.features()
    found = {"labels": data.labels, "ids": np.array(data.ids.tolist())}  # no objects
    if data.true_labels is not None:
        found["true_labels"] = data.true_labels
    if not sparse.issparse(rows):
        return {"x": rows, **found}
    parts = {f"x_{part}": array for part, array in csr_parts(rows).items()}
    return {**parts, "x_shape": np.array(rows.shape), **found}


def _rows(arrays: dict[str, Any], name: str) -> Any:
    if name in arrays:
        return arrays[name]
    data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix((data, indices, indptr), shape=tuple(arrays[f"{name}_shape"]))

"""Encodings that are done, kept in one folder each, named by the hash of what they depend on."""

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from agra.encode.fingerprint import file_hash
from agra.encode.scratch import Scratch
from agra.files import whole_folder
from agra.names import optional

Rows = Any  # an array (N, D) or a CSR matrix

FORMAT, VERSION = "agra-encoding", 1
MANIFEST = "manifest.json"
_CSR = ("data", "indices", "indptr")


def cache_folder() -> Path:
    """Where encodings are kept by default: ``AGRA_CACHE``, or the user's folder for caches.

    Example:
        >>> cache_folder().is_absolute()
        True
    """
    named = os.environ.get("AGRA_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    return Path(optional("platformdirs", "data").user_cache_path("agra", appauthor=False))


class Cache:
    """A folder of encodings.

    Args:
        folder: Made when something is saved.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache, what = Cache(Path(folder)), {"encoder": "none", "rows": 2}
        ...     cache.save(what, {"train": np.eye(2)})
        ...     cache.load(what)["train"].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entry(self, what: Mapping[str, Any]) -> Path:
        """The folder of an encoding: its name is the hash of all that it depends on."""
        canonical = json.dumps([FORMAT, VERSION, what], sort_keys=True)
        return self.folder / hashlib.sha256(canonical.encode()).hexdigest()[:32]

    def scratch(self, what: Mapping[str, Any]) -> Scratch:
        """Where an encoding that is not done keeps what it has."""
        entry = self.entry(what)
        return Scratch(entry.with_name(f"{entry.name}.unfinished"))

    def load(self, what: Mapping[str, Any]) -> dict[str, Rows] | None:
        """The rows by split, arrays memory-mapped; None if they are not there or damaged."""
        entry = self.entry(what)
        try:
            manifest = json.loads((entry / MANIFEST).read_bytes())
            if any(file_hash(entry / name) != sha for name, sha in manifest["files"].items()):
                return None
            return {name: _read(entry, name, kind) for name, kind in manifest["splits"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, what: Mapping[str, Any], rows: Mapping[str, Rows]) -> None:
        """Keep an encoding, whole or not at all, in place of a damaged one."""
        entry = self.entry(what)
        try:
            self._save(entry, what, rows)
        except OSError:
            if self.load(what) is None:  # else another process was faster
                raise

    def _save(self, entry: Path, what: Mapping[str, Any], rows: Mapping[str, Rows]) -> None:
        with whole_folder(entry) as draft:
            for name, part in rows.items():
                _write(draft, name, part)
            files = {path.name: file_hash(path) for path in sorted(draft.iterdir())}
            manifest = {
                "format": FORMAT,
                "version": VERSION,
                "of": what,
                "splits": {name: _kind(part) for name, part in rows.items()},
                "files": files,
                "completed": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            (draft / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def csr_parts(rows: Rows) -> dict[str, "np.ndarray[Any, Any]"]:
    """The arrays of a CSR matrix, by name."""
    return {part: getattr(rows, part) for part in _CSR}


def _kind(rows: Rows) -> dict[str, Any]:
    layout = "csr" if sparse.issparse(rows) else "dense"
    return {"layout": layout, "shape": list(rows.shape), "dtype": str(rows.dtype)}


def _write(folder: Path, name: str, rows: Rows) -> None:
    if not sparse.issparse(rows):
        np.save(folder / f"{name}.npy", rows, allow_pickle=False)
        return
    for part, array in csr_parts(rows).items():
        np.save(folder / f"{name}.{part}.npy", array, allow_pickle=False)


def _read(folder: Path, name: str, kind: dict[str, Any]) -> Rows:
    if kind["layout"] == "dense":
        empty = 0 in kind["shape"]  # nothing to map
        return np.load(folder / f"{name}.npy", mmap_mode=None if empty else "r", allow_pickle=False)
    parts = [np.load(folder / f"{name}.{part}.npy", allow_pickle=False) for part in _CSR]
    return sparse.csr_matrix(tuple(parts), shape=tuple(kind["shape"]))

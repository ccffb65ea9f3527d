"""Named arrays from a NumPy archive, and mistakes in them by file."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """The arrays of these names; pickled objects are refused.

    Raises:
        FileNotFoundError: No such file.
        ValueError: No NumPy archive, an array that is missing, or one of objects.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "some.npz"
        >>> np.savez(path, x=np.arange(3))
        >>> read_arrays(path, ["x"])["x"].tolist()
        [0, 1, 2]
    """
    if not path.is_file():
        raise FileNotFoundError(f"Expected a file {path}, got none.")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"Expected {path} to be a NumPy archive (.npz), got another format.")
    with np.load(path, allow_pickle=False) as archive:
        missing = sorted(set(names) - set(archive.files))
        if missing:
            raise ValueError(
                f"Expected {path} to hold an array {missing[0]!r}, got {sorted(archive.files)}."
            )
        try:
            return {name: archive[name] for name in names}
        except (ValueError, zipfile.BadZipFile) as error:
            raise ValueError(f"Expected {path} to hold whole, plain arrays: {error}.") from None


@contextmanager
def read_from(path: Path) -> Iterator[None]:
    """Let errors on the parts of a data set name the file that they came from."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Expected the parts in {path} to fit together: {error}") from None

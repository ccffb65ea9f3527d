"""Files and folders that are written whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A draft that takes the place of the file at the end, or vanishes after an error.

    Raises:
        OSError: A folder or a device in its place.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with whole_file(Path(folder) / "note.txt") as draft:
        ...         _ = draft.write_text("all of it")
        ...     [path.name for path in Path(folder).iterdir()]
        ['note.txt']
    """
    path = path.resolve()  # a link stays, what it leads to is written
    if path.exists() and not path.is_file():
        raise OSError(f"Expected {str(path)!r} to be a file to write, got a folder or a device.")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same of a folder, which is there, and empty, to begin with.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with whole_folder(Path(folder) / "model") as draft:
        ...         _ = (draft / "note.txt").write_text("all of it")
        ...     [path.name for path in Path(folder, "model").iterdir()]
        ['note.txt']
    """
    draft, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("part", "old"))
    try:
        draft.mkdir(parents=True)
        yield draft
        with suppress(FileNotFoundError):
            path.rename(old)
        draft.rename(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(old, ignore_errors=True)

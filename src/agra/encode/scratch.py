"""Work that outlives its process: what is finished is kept, whole or not at all."""

import hashlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from agra.files import whole_file

Array = np.ndarray[Any, Any]

PART = 4096  # rows that are kept together: half a minute of a ResNet-50

_DIGEST = hashlib.sha256().digest_size


class Scratch:
    """A folder of finished parts, each led by its own hash so that damage is noticed.

    Args:
        folder: Where the parts are kept; None keeps none.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Scratch(Path(folder)).write("part", b"done")
        ...     Scratch(Path(folder)).read("part")
        b'done'
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        return self._folder is not None

    def read(self, name: str) -> bytes | None:
        """What was written under that name; None if nothing was, or if it is damaged."""
        if self._folder is None:
            return None
        try:
            content = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        payload = content[_DIGEST:]
        return payload if hashlib.sha256(payload).digest() == content[:_DIGEST] else None

    def write(self, name: str, payload: bytes) -> None:
        """Keep that, in place of what was there."""
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            with whole_file(self._folder / name) as draft:
                draft.write_bytes(hashlib.sha256(payload).digest() + payload)

    def array(self, name: str, compute: Callable[[], Array]) -> Array:
        """The array that was kept under that name, or a new one, which then is."""
        kept = self.read(name)
        if kept is not None:
            return np.load(io.BytesIO(kept), allow_pickle=False)
        array = compute()
        if self.keeps:
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            self.write(name, content.getvalue())
        return array

    def clear(self) -> None:
        """Throw everything away."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

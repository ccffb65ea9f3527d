"""JSON from a file, with a place for every mistake."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """What a JSON file holds; names ending in ``.gz`` are unpacked.

    Raises:
        FileNotFoundError: No such file.
        ValueError: Not gzip, not UTF-8, or not JSON, with the place where it stops being so.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "some.json"
        >>> _ = path.write_text('{"a": 1}')
        >>> read_json(path)
        {'a': 1}
    """
    if not path.is_file():
        raise FileNotFoundError(f"Expected a file {path}, got none.")
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"Expected {path} to be whole gzip, got {error}.") from None
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected {path} to be UTF-8, got byte {data[error.start]:#04x} at {error.start}."
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"Expected {path} to be JSON, got an error at line {error.lineno}, column "
            f"{error.colno}: {error.msg}."
        ) from None

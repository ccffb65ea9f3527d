"""Text files, opened in one encoding: anything else in them is refused by file and line."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_FORMATS = {
    b"\x89png": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"pk\x03\x04": "a ZIP archive or a spreadsheet",
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"par1": "a Parquet file",
    b"\x1f\x8b": "a gzip file",
    b"%pdf": "a PDF file",
    b"<!doctype html": "an HTML page",
    b"<html": "an HTML page",
}
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def own_suffix(path: Path) -> str:
    """How a file name ends, whether compressed or not.

    Example:
        >>> own_suffix(Path("mails.CSV.gz"))
        '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[IO[str]]:
    r"""The file as text; line ends stay as they are, a byte order mark does not.

    Args:
        path: Compressed if it ends with .gz.
        encoding: Any that Python knows.

    Raises:
        ValueError: Another format or encoding, a damaged file, or an unknown encoding.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "mails.csv")
        ...     _ = path.write_bytes("\ufefftext,label".encode())
        ...     with open_text(path, "utf-8") as text:
        ...         text.read()
        'text,label'
    """
    try:
        codec = codecs.lookup(encoding).name
    except LookupError as error:
        raise ValueError(
            f"Expected `encoding` to be one that Python knows, got {encoding!r}."
        ) from error
    codec = "utf-8-sig" if codec == "utf-8" else codec
    try:
        _check_format(path, codec)
        with _open(path, "rt", encoding=codec, newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        line, likely = _undecodable(path, codec)
        raise ValueError(
            f"Expected {path.name} to be written in {encoding}, got other bytes in line {line}; "
            f"name what it is written in, such as encoding={likely!r}."
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"Expected {path.name} to be a whole gzip file, got: {error}.") from error


def _open(path: Path, mode: str, **options: Any) -> Any:
    return (gzip.open if path.name.lower().endswith(".gz") else open)(path, mode, **options)


def _check_format(path: Path, codec: str) -> None:
    with _open(path, "rb") as file:
        head = file.read(4096)
    found = next((name for start, name in _FORMATS.items() if head.lower().startswith(start)), "")
    wide = codec.startswith(("utf-16", "utf-32")) or head[:2] in _MARKS
    if not found and not wide and b"\0" in head:
        found = "a binary file"
    if found:
        raise ValueError(f"Expected {path.name} to hold text, as its name says, got {found}.")


def _undecodable(path: Path, codec: str) -> tuple[int, str]:
    """The first line that is written in something else, and what that might be."""
    decoder = codecs.getincrementaldecoder(codec)()
    line, likely = 0, "latin-1"
    with _open(path, "rb") as file:
        for line, content in enumerate(file, start=1):
            if line == 1:
                likely = _MARKS.get(content[:2], likely)
            try:
                decoder.decode(content)
            except UnicodeDecodeError:
                break
    return line, likely

"""One file from its public origin: whole and with the right checksum, or not at all."""

import errno
import http.client
import logging
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agra.names import optional

Progress = Callable[[str, int, int | None], None]  # file name, bytes so far, bytes in all

CHUNK = 1 << 16
TIMEOUT = 30.0  # seconds without a byte
RANGE_NOT_SATISFIABLE = 416


def download(
    url: str,
    target: Path,
    *,
    sha256: str,
    size: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """The file's path, once its bytes are there and right.

    What arrives is collected beside the target in a file that ends in ``.part``. A download that
    was cut goes on from there the next time, if the server can.

    Args:
        url: Where the file is published.
        target: Where it shall be.
        sha256: Of its content.
        size: In bytes, to see beforehand whether it fits.
        progress: Told after every piece: file name, bytes so far, and in all if known.

    Raises:
        ImportError: pooch is missing.
        ConnectionError: No server, or the connection broke.
        FileNotFoundError: The server does not have, or does not give, the file.
        ValueError: Another checksum.
        OSError: A full disk.

    Example:
        >>> import hashlib, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> digest = hashlib.sha256(b"hello").hexdigest()
        >>> download("data:,hello", folder / "hello.txt", sha256=digest).read_text()
        'hello'
    """
    pooch = optional("pooch", "data")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    _check_space(target, None if size is None else size - _length(part))

    def stream(url: str, output: str, _: Any) -> None:
        with _named(url, target):
            _fetch(url, part, lambda done, total: progress and progress(target.name, done, total))
        os.replace(part, output)

    with _quiet(pooch.get_logger()):
        try:
            pooch.retrieve(
                url,
                f"sha256:{sha256}",
                fname=target.name,
                path=target.parent,
                downloader=stream,
            )
        except ValueError as error:
            raise ValueError(
                f"Expected {url} to have the SHA-256 {sha256}, got another content ({error}), "
                "which was thrown away; it was changed, or damaged on its way: try again."
            ) from None
    return target


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check_space(target: Path, missing: int | None) -> None:
    free = shutil.disk_usage(target.parent).free
    if missing is not None and missing > free:
        raise OSError(
            f"Expected {missing:,} bytes of free space for {target}, got {free:,}; free some, or "
            "choose another data home."
        )


def _fetch(url: str, part: Path, report: Callable[[int, int | None], Any]) -> None:
    """Append what is missing of the file, or write it anew if the server only gives all of it."""
    done = _length(part)
    try:
        response = _open(url, done)
    except urllib.error.HTTPError as error:
        if not done or error.code != RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        done, response = 0, _open(url, 0)  # what is there is no part of the file
    with response:
        if getattr(response, "status", None) != http.client.PARTIAL_CONTENT:
            done = 0
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with part.open("ab" if done else "wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                done += len(chunk)
                report(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the server closed it after {done} of {total} bytes")


def _open(url: str, start: int) -> Any:
    headers = {"User-Agent": "agra"} | ({"Range": f"bytes={start}-"} if start else {})
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)


@contextmanager
def _named(url: str, target: Path) -> Iterator[None]:
    """What can go wrong on the way, by what the caller can do about it."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise FileNotFoundError(
            f"Expected {url} to be there, got HTTP {error.code} ({error.reason}); put the file "
            f"at {target} yourself."
        ) from None
    except urllib.error.URLError as error:
        raise ConnectionError(
            f"Expected a network to download {url}, got {error.reason}; put the file at "
            f"{target} yourself, or try again."
        ) from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise ConnectionError(
            f"Expected all of {url}, got a connection that broke ({error}); try again to go on "
            "from there."
        ) from None
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise OSError(
            f"Expected room for {target}, got a full disk; free some space and try again to go "
            "on from there, or choose another data home."
        ) from None


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Without pooch's reports on stderr: the library prints nothing."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)

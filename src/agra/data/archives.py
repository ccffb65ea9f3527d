"""Files out of a tar archive, after a look at all that is in it."""

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from agra.data.home import inside
from agra.files import whole_file

DAMAGED = (
    tarfile.TarError,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
)  # what reading a cut archive raises


def unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Write members of an archive to paths of one's own, each whole or not at all.

    Nothing is written unless the archive can be read to its end and every member of it, wanted or
    not, is a folder or a plain file with a path that stays below the archive's root.

    Args:
        archive: A tar file, compressed or not.
        members: Where to write each member, by its name in the archive.

    Raises:
        ValueError: A cut or damaged archive, a member that climbs out or is a link or a device, or
            one that is wanted and missing.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.txt").write_text("A")
        >>> with tarfile.open(folder / "some.tar.gz", "w:gz") as made:
        ...     made.add(folder / "a.txt", "some/a.txt")
        >>> unpack(folder / "some.tar.gz", {"some/a.txt": folder / "b.txt"})
        >>> (folder / "b.txt").read_text()
        'A'
    """
    try:
        with tarfile.open(archive) as opened:
            found = opened.getmembers()
    except DAMAGED as error:
        reason = (str(error) or type(error).__name__).partition("\n")[0]
        raise ValueError(
            f"Expected {archive} to be a whole tar archive, got {reason!r}; "
            "delete it and download it again."
        ) from None
    for member in found:
        inside(archive, member.name)
        if not (member.isreg() or member.isdir()):
            raise ValueError(
                f"Expected {archive} to hold plain files and folders only, got {member.name!r}, "
                "a link or a device; do not trust it."
            )
    missing = sorted(set(members) - {member.name for member in found if member.isreg()})
    if missing:
        raise ValueError(f"Expected {archive} to hold the file {missing[0]!r}, got none.")
    with tarfile.open(archive) as opened:
        for name, target in members.items():
            _write(opened, name, target)


def _write(opened: tarfile.TarFile, name: str, target: Path) -> None:
    source = opened.extractfile(name)
    assert source is not None  # it is a plain file
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as draft, source, draft.open("wb") as file:
        shutil.copyfileobj(source, file)

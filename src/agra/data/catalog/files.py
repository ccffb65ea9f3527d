"""The files of an entry: the ones that are in the data home, and how the others get there."""

from pathlib import Path

from agra.data.archives import unpack
from agra.data.catalog.entry import Archive, Entry, File
from agra.data.download import Progress, download
from agra.data.home import inside


def present(home: Path, file: File) -> tuple[File, Path] | None:
    """The file, or the form that serves instead, with its path; None if neither is there."""
    for form in (file, file.instead):
        if form is not None and inside(home, form.path).is_file():
            return form, inside(home, form.path)
    return None


def obtain(
    home: Path, entry: Entry, relative: str, *, allowed: bool, progress: Progress | None = None
) -> Path:
    """The path of one of an entry's files.

    Args:
        home: The data home.
        entry: Of the catalog.
        relative: The file's path in the home.
        allowed: Whether to download it if it is not there.
        progress: Told of the download.

    Raises:
        FileNotFoundError: It is not there and cannot, or shall not, be downloaded.
    """
    file = next(file for file in entry.files if file.path == relative)
    found = present(home, file)
    if found is not None:
        return found[1]
    if allowed and file.archive is not None:
        _unpack(home, entry, file.archive[0], progress)
        return inside(home, file.path)
    for form in (file, file.instead):
        if allowed and form is not None and form.url is not None and form.sha256 is not None:
            return download(
                form.url,
                inside(home, form.path),
                sha256=form.sha256,
                size=form.size,
                progress=progress,
            )
    source = f"{file.how} from {file.origin}" if file.how else f"it comes from {file.origin}"
    raise FileNotFoundError(
        f"Expected the file {inside(home, file.path)} of {entry.name!r} to be there, got none; "
        f"put it there: {source}."
    )


def _unpack(home: Path, entry: Entry, archive: Archive, progress: Progress | None) -> None:
    """All of the entry's files that the archive holds, which is not needed after that."""
    path = inside(home, archive.path)
    if not path.is_file():
        download(archive.url, path, sha256=archive.sha256, size=archive.size, progress=progress)
    wanted = {
        file.archive[1]: inside(home, file.path)
        for file in entry.files
        if file.archive is not None and file.archive[0] == archive and not present(home, file)
    }
    unpack(path, wanted)
    path.unlink()

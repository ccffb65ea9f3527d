"""Cells of a table to paths of images that are there, in their folder and nowhere else."""

from collections.abc import Callable
from pathlib import Path, PureWindowsPath

from agra.data.readers.cells import is_blank
from agra.data.readers.records import Records


def image_paths(
    records: Records, column: str, folder: Path, check: Callable[[Path], object] | None = None
) -> list[Path]:
    """The path of an image per row.

    Args:
        records: The rows.
        column: Which of their cells: paths within the folder.
        folder: Where they start.
        check: Is called with every path, to raise a ValueError.

    Raises:
        FileNotFoundError: A file that is not there.
        ValueError: A path, or a link, that leads out of the folder; or what the check says.

    Example:
        >>> import pandas as pd
        >>> part = Records("cats.csv", pd.DataFrame({"path": ["../secret.png"]}), [2], "line")
        >>> image_paths(part, "path", Path("images"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: Expected a path ... got '../secret.png', which leads out of it.
    """
    root = folder.resolve()
    paths = []
    for row, cell in enumerate(records.cells[column]):
        where = records.where(row, column)
        if is_blank(cell) or not isinstance(cell, str):
            raise ValueError(f"Expected the path of an image in {where}, got {cell!r:.40}.")
        path = folder / cell
        given = PureWindowsPath(cell)  # reads both kinds of slashes, and drives
        climbs = bool(given.anchor) or ".." in given.parts
        if not climbs and not path.is_file():
            raise FileNotFoundError(
                f"Expected the path of a file within {folder} in {where}, got {cell!r}."
            )
        if climbs or not path.resolve().is_relative_to(root):
            raise ValueError(
                f"Expected a path within the folder in {where}, got {cell!r}, which leads out of "
                "it."
            )
        if check is not None:
            try:
                check(path)
            except ValueError as error:
                raise ValueError(
                    f"Expected a whole image in {where}, got {cell!r}: {error}"
                ) from error
        paths.append(path)
    return paths

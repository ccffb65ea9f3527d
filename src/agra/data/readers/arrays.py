"""Arrays in files to arrays of numbers: .npy, .npz and .csv, never what would need pickle."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from agra.data.readers.rows import csv_rows

Array = np.ndarray[Any, Any]


def read_array(source: Any, argument: str) -> tuple[Any, tuple[str, ...]]:
    r"""A dense array or a CSR matrix of numbers, and the names of its columns, if it has any.

    Args:
        source: The path of a file, an array or what NumPy makes one of, or a SciPy matrix.
        argument: What it is for, for messages.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A file that holds no numbers, or does not hold one array.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "votes.csv")
        ...     _ = path.write_text("links,words\n1,-1\n")
        ...     read_array(path, "votes")
        (array([[ 1., -1.]]), ('links', 'words'))
    """
    names: tuple[str, ...] = ()
    if not isinstance(source, str | Path):
        array: Any = source if sparse.issparse(source) else np.asarray(source)
    else:
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(
                f"Expected `{argument}` to be an array or the path of a file, got {str(path)!r}."
            )
        if path.suffix.lower() == ".csv":
            array, names = _from_csv(path)
        else:
            array = _from_numpy(path, argument)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"Expected `{argument}` to be an array of numbers, got {array.dtype}.")
    return (array.tocsr() if sparse.issparse(array) else array), names


def check_finite(array: Any, argument: str) -> Any:
    """The array, if all of its numbers are finite.

    Args:
        array: Dense or CSR.
        argument: What it is for, for messages.

    Raises:
        ValueError: NaN or infinity.

    Example:
        >>> check_finite(np.eye(2), "features").sum()
        np.float64(2.0)
    """
    values = array.data if sparse.issparse(array) else array
    wrong = ~np.isfinite(values)
    if wrong.any():
        place = int(wrong.ravel().argmax())
        if sparse.issparse(array):
            row = int(np.searchsorted(array.indptr, place, side="right")) - 1
        else:
            row = place // (array.size // len(array))
        raise ValueError(
            f"Expected `{argument}` to be finite numbers, got {values.ravel()[place]} in row {row}."
        )
    return array


def whole_numbers(array: Array, argument: str) -> Array:
    """The array as whole numbers, which they must be already.

    Args:
        array: Dense.
        argument: What it is for, for messages.

    Raises:
        ValueError: A fraction, NaN or infinity.

    Example:
        >>> whole_numbers(np.array([1.0, -1.0]), "votes")
        array([ 1, -1])
    """
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    wrong = ~(np.isfinite(array) & (np.floor(array) == array))
    if wrong.any():
        row, *columns = (int(part[0]) for part in wrong.nonzero())
        raise ValueError(
            f"Expected `{argument}` to be whole numbers, got {array[wrong][0]} in row {row}"
            f"{''.join(f', column {column}' for column in columns)}."
        )
    return array.astype(np.int64)


def _from_numpy(path: Path, argument: str) -> Any:
    try:
        with path.open("rb") as file:  # NumPy would leave a broken archive open
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            arrays = {name: loaded[name] for name in loaded.files}
            if "format" in arrays:
                file.seek(0)
                return _checked(sparse.load_npz(file))
    except (
        ValueError,
        TypeError,
        KeyError,
        OSError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(
            f"Expected {path.name} to be a .npy, .npz or .csv file of plain numbers, got: {error}; "
            "arrays of Python objects are not read, since that may run code."
        ) from error
    if len(arrays) != 1:
        raise ValueError(
            f"Expected one array in {path.name}, got {list(arrays)[:8]}; pass the right one as "
            f"`{argument}`, not the file."
        )
    return next(iter(arrays.values()))


def _checked(matrix: Any) -> Any:
    if matrix.format in ("csr", "csc"):
        matrix.check_format(full_check=True)  # of places that a file may lie about
    elif matrix.format != "coo":
        raise ValueError(f"Expected a CSR, CSC or COO matrix, got {matrix.format}")
    return matrix


def _from_csv(path: Path) -> tuple[Array, tuple[str, ...]]:
    rows = list(csv_rows(path))
    names: list[str] = []
    if rows and any(_number(cell) is None for cell in rows[0][1]):
        names = rows.pop(0)[1]
    skipped = 1 if names and not names[0] else 0  # the row index that data frames write
    if not rows:
        raise ValueError(f"Expected rows of numbers in {path.name}, got none.")
    array = np.empty((len(rows), len(rows[0][1]) - skipped))
    for row, (line, cells) in enumerate(rows):
        for column, cell in enumerate(cells[skipped:]):
            number = _number(cell)
            if number is None:
                raise ValueError(
                    f"Expected a number in {path.name}, line {line}, column "
                    f"{column + skipped + 1}, got {cell!r:.40}."
                )
            array[row, column] = number
    return array, tuple(names[skipped:])


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None

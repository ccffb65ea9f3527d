"""Mulan's data sets of several labels per sample, as NumPy archives."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from agra.data.dataset import NoisyDataset
from agra.data.readers.npz import read_arrays, read_from


def read_mulan(path: str | Path, *, name: str = "") -> dict[str, NoisyDataset]:
    """The training and the test split, both with right labels; whole numbers, words, as CSR rows.

    Args:
        path: A NumPy archive of ``x_train``, ``y_train``, ``x_test``, ``y_test`` (0/1 matrices, a
            column per label) and ``labels``, their names.
        name: Of the data set; by default the file's.

    Raises:
        FileNotFoundError: No such file.
        ValueError: Arrays that are missing or do not fit together.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.npz"
        >>> rows, labels = np.eye(2), np.array([[1, 0], [1, 1]])
        >>> np.savez(path, x_train=rows, y_train=labels, x_test=rows, y_test=labels,
        ...     labels=["calm", "sad"])
        >>> read_mulan(path)["train"].label_names().tolist() == [{"calm"}, {"calm", "sad"}]
        True
    """
    path = Path(path)
    arrays = read_arrays(path, ["x_train", "y_train", "x_test", "y_test", "labels"])
    with read_from(path):
        return {
            split: NoisyDataset(
                inputs=_rows(arrays[f"x_{split}"]),
                labels=arrays[f"y_{split}"],
                true_labels=arrays[f"y_{split}"],
                classes=arrays["labels"].tolist(),
                split=split,
                name=name or path.stem,
            )
            for split in ("train", "test")
        }


def _rows(values: "np.ndarray[Any, Any]") -> Any:
    if values.dtype.kind in "bui":  # words of a text: nearly all are zero
        return sparse.csr_matrix(values, dtype=np.float32)
    return values.astype(np.float32)

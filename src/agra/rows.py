"""Feature rows, dense or sparse, and the few things that a linear model asks of them."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from agra.inputs import from_array

_Array = np.ndarray[Any, Any]

_CHUNK = 2**12  # rows whose squares exist at a time
_FEW = 2**12  # entries that are taken faster than SciPy checks what it is asked for


class Rows(ABC):
    """(N, D) numbers; what comes out of a product is dense and small."""

    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def take(self, rows: Tensor) -> "Rows":
        """Some of the rows, by number."""

    @abstractmethod
    def split(self, count: int) -> "tuple[Rows, Rows]":
        """The first rows, and the rest; nothing is copied."""

    @abstractmethod
    def times(self, weight: Tensor) -> Tensor:
        """The product with a weight (D, K): (N, K)."""

    @abstractmethod
    def pull_back(self, output_gradients: Tensor) -> Tensor:
        """The gradient (D, K) in a weight, from one in the product (N, K)."""

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """Of every row: (N,)."""


class DenseRows(Rows):
    """Rows of a tensor."""

    def __init__(self, values: Tensor) -> None:
        self._values = values
        self.shape = (values.shape[0], values.shape[1])

    def take(self, rows: Tensor) -> "DenseRows":
        return DenseRows(self._values[rows])

    def split(self, count: int) -> "tuple[DenseRows, DenseRows]":
        return DenseRows(self._values[:count]), DenseRows(self._values[count:])

    def times(self, weight: Tensor) -> Tensor:
        return self._values @ weight

    def pull_back(self, output_gradients: Tensor) -> Tensor:
        return self._values.T @ output_gradients

    def squared_norms(self) -> Tensor:
        return torch.linalg.vecdot(self._values, self._values)


class SparseRows(Rows):
    """Rows of a CSR matrix without duplicate entries.

    Products are SciPy's: torch's CSR tensors cannot be sliced by row, and are slower. Building a
    SciPy matrix costs more than a small product, so batches of one size share a shell. Values of
    another type are converted when they are used: of all rows there need be no copy.
    """

    def __init__(
        self, parts: tuple[_Array, _Array, _Array], width: int, dtype: Any, shells: Any = None
    ):
        self._starts, self._columns, self._values = parts
        self.shape = (len(self._starts) - 1, width)
        self._dtype = np.dtype(dtype)
        self._shells: dict[Any, Any] = {} if shells is None else shells

    def take(self, rows: Tensor) -> "SparseRows":
        numbers = rows.numpy()
        firsts = self._starts[numbers]
        counts = self._starts[numbers + 1] - firsts
        starts = np.zeros(len(counts) + 1, dtype=self._starts.dtype)
        np.cumsum(counts, out=starts[1:])
        if starts[-1] > _FEW:  # row by row, not entry by entry
            taken = self._shell(sparse.csr_array, self.shape, self._values)[numbers]
            return self._like(starts, taken.indices, self._converted(taken.data))
        places = np.repeat(firsts - starts[:-1], counts)
        places += np.arange(len(places), dtype=places.dtype)
        return self._like(starts, self._columns[places], self._converted(self._values[places]))

    def split(self, count: int) -> "tuple[SparseRows, SparseRows]":
        middle = self._starts[count]
        return (
            self._like(self._starts[: count + 1], self._columns[:middle], self._values[:middle]),
            self._like(
                self._starts[count:] - middle, self._columns[middle:], self._values[middle:]
            ),
        )

    def times(self, weight: Tensor) -> Tensor:
        matrix = self._shell(sparse.csr_array, self.shape, self._converted(self._values))
        return torch.from_numpy(matrix @ weight.numpy())

    def pull_back(self, output_gradients: Tensor) -> Tensor:
        # the arrays of a CSR matrix are those of its transpose in CSC
        values = self._converted(self._values)
        turned = self._shell(sparse.csc_array, self.shape[::-1], values)
        return torch.from_numpy(turned @ output_gradients.numpy())

    def squared_norms(self) -> Tensor:
        norms = [self._squares(first) for first in range(0, len(self), _CHUNK)]
        return torch.from_numpy(np.concatenate([np.empty(0, self._dtype), *norms]))

    def _squares(self, first: int) -> _Array:
        starts = self._starts[first : first + _CHUNK + 1]
        squares = np.zeros(starts[-1] - starts[0] + 1, dtype=self._dtype)
        np.square(self._converted(self._values[starts[0] : starts[-1]]), out=squares[:-1])
        sums = np.add.reduceat(squares, starts[:-1] - starts[0])
        sums[starts[1:] == starts[:-1]] = 0  # reduceat gives an empty row the entry after it
        return sums

    def _like(self, *parts: _Array) -> "SparseRows":
        starts, columns, values = parts
        return SparseRows((starts, columns, values), self.shape[1], self._dtype, self._shells)

    def _converted(self, values: _Array) -> _Array:
        return values.astype(self._dtype, copy=False)

    def _shell(self, kind: Any, shape: tuple[int, int], values: _Array) -> Any:
        key = kind, shape
        if key not in self._shells:
            self._shells[key] = kind(shape, dtype=self._dtype)
        shell = self._shells[key]
        shell.data, shell.indices, shell.indptr = values, self._columns, self._starts
        return shell


def as_rows(features: Any, dtype: torch.dtype = torch.float32) -> Rows:
    """Rows of an array, a tensor or a SciPy matrix, as numbers of one floating type.

    Nothing is copied that already has that type, nor of CSR matrices without duplicates.

    Example:
        >>> as_rows([[1.0, 2.0], [0.0, 3.0]]).squared_norms().tolist()
        [5.0, 9.0]
    """
    if isinstance(features, Tensor):
        return DenseRows(features.to(dtype))
    wanted = np.dtype(str(dtype).removeprefix("torch."))
    if not sparse.issparse(features):
        return DenseRows(from_array(np.asarray(features, dtype=wanted)))
    matrix = features.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return SparseRows((matrix.indptr, matrix.indices, matrix.data), matrix.shape[1], wanted)

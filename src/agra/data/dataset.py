"""A data set with noisy labels: inputs, given labels, and what else is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from torch import Tensor
from torch.utils.data import Dataset

from agra.data.parts import (
    Array,
    function_names,
    input_rows,
    known,
    label_codes,
    named,
    unique_ids,
    vote_matrix,
)
from agra.inputs import from_array
from agra.names import check_name


class Sample(NamedTuple):
    """One row of a data set."""

    input: Any
    label: Any
    id: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyDataset:
    """Inputs with labels that may be wrong. Nothing in it can be changed; `replace` makes another.

    Attributes:
        inputs: Numbers (N, ...), a CSR matrix, or one text or one image path per row.
        labels: The given labels: class indices (N,), ``IGNORE_LABEL`` for none; or, for several
            labels per sample, a 0/1 matrix (N, K), NaN where unknown.
        classes: Their names.
        true_labels: What is known to be right, shaped as the labels; None if nothing is.
        votes: (N, F), the class that each labelling function (or annotator) voted for, -1 where it
            abstained; None if there are none.
        functions: The names of these functions; by default 0, 1, 2, ...
        ids: One per row, each different; by default 0, 1, 2, ...
        split: "train", "valid" or "test".
        name: Of the data set.

    Raises:
        ValueError: Parts that do not fit together; the message says which.

    Example:
        >>> data = NoisyDataset(
        ...     inputs=["free money", "lunch?"], labels=[1, 1], classes=("ham", "spam"),
        ...     true_labels=[1, 0],
        ... )
        >>> data.noise_rate, data[data.wrong].inputs.tolist()
        (0.5, ['lunch?'])
    """

    inputs: Any
    labels: Any
    classes: Sequence[str]
    true_labels: Any = None
    votes: Any = None
    functions: Sequence[str] = ()
    ids: Any = None
    split: str = "train"
    name: str = ""

    def __post_init__(self) -> None:
        labels = label_codes(self.labels, len(self.classes), "labels")
        truth = self.true_labels
        votes = (
            None if self.votes is None else vote_matrix(self.votes, len(labels), len(self.classes))
        )
        parts: dict[str, Any] = {
            "inputs": input_rows(self.inputs, len(labels)),
            "labels": labels,
            "classes": tuple(str(name) for name in self.classes),
            "true_labels": None,
            "votes": votes,
            "functions": function_names(self.functions, votes),
            "ids": unique_ids(self.ids, len(labels)),
        }
        if truth is not None:
            parts["true_labels"] = label_codes(truth, len(self.classes), "true_labels")
            if parts["true_labels"].shape != labels.shape:
                raise ValueError(
                    f"Expected `true_labels` to be shaped as `labels` {labels.shape}, got "
                    f"{parts['true_labels'].shape}."
                )
        check_name("split", self.split, ["train", "valid", "test"])
        if len(set(parts["classes"])) < len(parts["classes"]):
            raise ValueError(f"Expected `classes` to be different, got {parts['classes'][:8]}.")
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Any) -> Any:
        """One `Sample` for a number; a smaller data set for a slice, a mask or several numbers."""
        if isinstance(rows, int | np.integer):
            if not -len(self) <= rows < len(self):
                raise IndexError(f"Expected a row in [0, {len(self) - 1}], got {rows}.")
            return Sample(self.inputs[rows], self.labels[rows], self.ids[rows])
        rows = rows if isinstance(rows, slice) else np.asarray(rows)
        if isinstance(rows, np.ndarray) and not rows.size:
            rows = rows.astype(np.int64)
        names = ("inputs", "labels", "true_labels", "votes", "ids")
        parts = {name: getattr(self, name) for name in names}
        return self.replace(**{n: None if p is None else p[rows] for n, p in parts.items()})

    def __repr__(self) -> str:
        title = f"{self.name} {self.split}".strip()
        known = "" if self.noise_rate is None else f", {self.noise_rate:.1%} wrong"
        return (
            f"<NoisyDataset {title}: {len(self)} {self.kind}, {len(self.classes)} classes{known}>"
        )

    def replace(self, **parts: Any) -> Self:
        """The same with other parts."""
        return replace(self, **parts)

    @property
    def several(self) -> bool:
        """Whether a sample may have several labels."""
        return self.labels.ndim == 2

    @property
    def kind(self) -> Literal["texts", "paths", "numbers"]:
        """What the inputs are."""
        if sparse.issparse(self.inputs) or self.inputs.dtype != object:
            return "numbers"
        return "paths" if len(self) and isinstance(self.inputs[0], Path) else "texts"

    @property
    def labelled(self) -> Array:
        """Which rows, or which entries, carry a given label."""
        return known(self.labels)

    @property
    def wrong(self) -> Array:
        """Which given labels differ from the true ones, where both are known."""
        if self.true_labels is None:
            raise ValueError("Expected a data set with `true_labels` to tell what is wrong.")
        both = self.labelled & known(self.true_labels)
        return both & (self.labels != self.true_labels)

    @property
    def noise_rate(self) -> float | None:
        """The share of given labels that are wrong; None if the true ones are not known."""
        if self.true_labels is None:
            return None
        both = self.labelled & known(self.true_labels)
        return float(self.wrong.sum() / both.sum()) if both.any() else None

    def label_names(self) -> Array:
        """The given labels by name, None where there is none; for several labels as sets."""
        return named(self.labels, self.classes)

    def features(self) -> Any:
        """The inputs as rows of numbers: an array (N, D) or a CSR matrix.

        Raises:
            TypeError: Texts or images, which an encoder must turn into numbers first.
        """
        if self.kind != "numbers":
            raise TypeError(
                f"Expected numbers as inputs, got {self.kind}; encode them first, see agra.encode."
            )
        return self.inputs if sparse.issparse(self.inputs) else self.inputs.reshape(len(self), -1)

    def to_csr(self) -> Any:
        """The inputs as a CSR matrix."""
        return sparse.csr_matrix(self.features())

    def to_torch(self) -> "Dataset[tuple[Any, Tensor, int]]":
        """A map-style Dataset of (input, label, row), as `agra.Agra` and a DataLoader take it."""
        return _TorchRows(self)

    def to_frame(self) -> pd.DataFrame:
        """One row per sample, indexed by id: the input, label names, and a column per function."""
        frame = pd.DataFrame(index=pd.Index(self.ids, name="id"))
        if self.kind == "numbers":
            numbers = self.features()
            if sparse.issparse(numbers):
                sparse_frame: Any = pd.DataFrame.sparse  # whose type the stubs do not know
                frame = sparse_frame.from_spmatrix(numbers, index=frame.index)
            else:
                frame = pd.DataFrame(numbers, index=frame.index)
            frame.columns = [f"x{place}" for place in range(frame.shape[1])]
        else:
            frame["text" if self.kind == "texts" else "path"] = self.inputs
        frame["label"] = self.label_names()
        if self.true_labels is not None:
            frame["true_label"] = named(self.true_labels, self.classes)
        if self.votes is not None:
            columns = [named(column, self.classes) for column in self.votes.T]
            votes = dict(zip(self.functions, columns, strict=True))
            frame = pd.concat([frame, pd.DataFrame(votes, index=frame.index)], axis=1)
        return frame


class _TorchRows(Dataset[tuple[Any, Tensor, int]]):
    def __init__(self, data: NoisyDataset) -> None:
        self._data = data
        self.targets = from_array(np.array(data.labels))

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, row: int) -> tuple[Any, Tensor, int]:
        if not 0 <= row < len(self):
            raise IndexError(f"Expected a row in [0, {len(self) - 1}], got {row}.")
        given = self._data.inputs[row]
        if sparse.issparse(given):
            given = torch.as_tensor(given.toarray().ravel())
        elif isinstance(given, np.ndarray | np.generic):
            given = torch.as_tensor(np.array(given))
        return given, self.targets[row], row

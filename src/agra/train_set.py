"""A training set: rows by number, whatever holds them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset, default_collate

from agra.inputs import Inputs, as_inputs, from_array, num_rows, take
from agra.labels import is_soft, labelled

Collate = Callable[[list[Any]], Any]


class TrainSet:
    """Inputs and given labels by row number: arrays, tensors, CSR, or a map-style Dataset.

    Args:
        source: ``(inputs, labels)``, a Dataset whose items are ``(input, label, ...)`` or dicts
            with "labels" or "label".
        labels: The labels of all samples, for a Dataset that does not offer them as ``targets`` or
            ``labels``; only class-weighted sampling needs them.
        collate: Items to a batch, as a DataLoader's ``collate_fn``.

    Raises:
        TypeError: A source without length and rows.
        ValueError: No rows, or another number of labels.

    Example:
        >>> rows = TrainSet((torch.eye(3), [0, 1, 2]))
        >>> rows.rows(torch.tensor([2]))
        (tensor([[0., 0., 1.]]), tensor([2]))
    """

    def __init__(
        self, source: Any, *, labels: Any = None, collate: Collate = default_collate
    ) -> None:
        self._said = labels is not None
        _check_source(source)
        self._collate = collate
        self._inputs: Inputs = None
        self._items: Dataset[Any] | None = None
        if isinstance(source, TensorDataset) and len(source.tensors) >= 2:
            source = source.tensors[:2]
        if isinstance(source, tuple | list) and len(source) == 2:
            self._inputs, given = as_inputs(source[0]), source[1] if labels is None else labels
            self._size = num_rows(self._inputs)
            if given is None:
                raise ValueError("Expected `labels` for the inputs of `train_set`, got None.")
        elif _has_rows(source):
            self._items, given = source, _labels_of(source) if labels is None else labels
            self._size = len(source)
        else:
            iterable = isinstance(source, IterableDataset)
            kind = "an IterableDataset" if iterable else type(source).__name__
            raise TypeError(
                "Expected `train_set` to be (inputs, labels) or a map-style Dataset with rows by "
                f"number, got {kind}."
            )
        if self._size == 0:
            raise ValueError("Expected `train_set` to hold samples, got an empty one.")
        self.labels = None if given is None else as_labels(given)
        if self.labels is not None and len(self.labels) != self._size:
            raise ValueError(
                f"Expected `labels` to have one entry per sample of `train_set` ({self._size}), "
                f"got {len(self.labels)}."
            )

    @property
    def settled(self) -> bool:
        """Whether `labels` are what `rows` gives; the items of a Dataset speak for themselves."""
        return self.labels is not None and (self._said or self._items is None)

    def missing_classes(self, num_classes: int) -> list[int]:
        """Which classes no label names; none if the labels are not known or soft."""
        if self.labels is None or is_soft(self.labels):
            return []
        found = set(self.labels[labelled(self.labels)].unique().tolist())
        return [label for label in range(num_classes) if label not in found]

    def __len__(self) -> int:
        return self._size

    def rows(self, rows: Tensor) -> tuple[Inputs, Tensor]:
        """The inputs and given labels of those rows."""
        if self._items is None:
            assert self.labels is not None
            return take(self._inputs, rows, self._size), self.labels[rows]
        batch = self._collate([self._items[row] for row in rows.tolist()])
        inputs, labels = split_batch(batch)
        if self.settled and self.labels is not None:
            return inputs, self.labels[rows]
        return inputs, as_labels(labels)  # a transform may have changed the `targets`


def as_train_set(
    source: Any, *, labels: Any = None, collate: Collate = default_collate
) -> TrainSet:
    """The training set itself, or one of that source.

    Raises:
        ValueError: Labels beside a `TrainSet`.
    """
    if not isinstance(source, TrainSet):
        return TrainSet(source, labels=labels, collate=collate)
    if labels is not None:
        raise ValueError("Expected `labels` to be None with a TrainSet, which has its own labels.")
    return source


def _check_source(source: Any) -> None:
    """Refuse what has rows, but in which inputs and labels cannot be told apart."""
    if isinstance(source, Tensor | np.ndarray):
        raise TypeError(
            "Expected `train_set` to be (inputs, labels), got inputs alone; pass both as a pair."
        )
    if isinstance(source, tuple) and len(source) != 2:
        raise TypeError(
            f"Expected `train_set` to be a pair (inputs, labels), got a tuple of {len(source)}; "
            "ids need not be given, they are the row numbers."
        )


def _has_rows(source: Any) -> bool:
    if isinstance(source, IterableDataset | Mapping):
        return False  # even if it says its length
    return hasattr(source, "__getitem__") and hasattr(source, "__len__")


def split_batch(batch: Any) -> tuple[Inputs, Tensor]:
    """Inputs and labels of a collated batch.

    Raises:
        TypeError: A batch in which the labels cannot be told from the inputs.
    """
    if isinstance(batch, tuple | list) and len(batch) >= 2:
        return batch[0], batch[1]
    names = [name for name in ("labels", "label") if isinstance(batch, Mapping) and name in batch]
    if not names:
        raise TypeError(
            "Expected items of `train_set` to be (input, label, ...) or dicts with 'labels', got "
            f"{type(batch).__name__}; pass `collate` to bring them into that form."
        )
    return {name: part for name, part in batch.items() if name != names[0]}, batch[names[0]]


def as_labels(labels: Any) -> Tensor:
    """Labels as a tensor: integers as int64, everything else as it is.

    Raises:
        TypeError: Labels that are not numbers.
    """
    if isinstance(labels, Tensor):
        tensor = labels
    else:
        array = np.asarray(labels)
        if array.dtype.kind not in "biuf":
            raise TypeError(
                f"Expected `labels` to be numbers, got {array.dtype}; encode class names as "
                "0, 1, 2, ... first."
            )
        tensor = from_array(array)
    return tensor if tensor.is_floating_point() else tensor.long()


def _labels_of(source: Any) -> Any:
    if isinstance(source, Subset):
        given = _labels_of(source.dataset)
        if given is None:
            return None
        return as_labels(given)[torch.as_tensor(source.indices, dtype=torch.int64)]
    if isinstance(source, TensorDataset) and len(source.tensors) >= 2:
        return source.tensors[1]
    for name in ("targets", "labels"):
        given = getattr(source, name, None)
        if isinstance(given, Tensor | np.ndarray | Sequence) and len(given) == len(source):
            return given
    return None

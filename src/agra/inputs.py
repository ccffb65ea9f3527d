"""A batch of inputs as the model takes it: a tensor, or a tuple or dict of tensors.

A tuple is passed as ``model(*inputs)``, a dict as ``model(**inputs)``. Rows are samples. Torch CSR
matrices count as tensors; torch cannot select their rows, so `take` does.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.func import functional_call

Inputs = Any  # Tensor | tuple[Inputs, ...] | dict[str, Inputs]; Python cannot yet spell it usefully


def as_inputs(inputs: Any) -> Inputs:
    """Arrays and SciPy matrices as tensors of the same numbers, in the same structure.

    Raises:
        TypeError: Something that holds no numbers.
    """
    if isinstance(inputs, Tensor):
        return inputs.to_sparse_csr() if inputs.layout == torch.sparse_coo else inputs
    if isinstance(inputs, Mapping):
        return {name: as_inputs(part) for name, part in inputs.items()}
    if isinstance(inputs, tuple | list) and inputs and not np.isscalar(inputs[0]):
        return tuple(as_inputs(part) for part in inputs)
    if sparse.issparse(inputs):
        rows = inputs.tocsr()
        if not rows.has_canonical_format:  # torch wants sorted, distinct columns in a row
            rows = rows.copy()
            rows.sum_duplicates()
        return torch.sparse_csr_tensor(
            torch.as_tensor(rows.indptr),
            torch.as_tensor(rows.indices),
            torch.as_tensor(rows.data),
            size=rows.shape,
            check_invariants=True,
        )
    array = np.asarray(inputs)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            "Expected `inputs` to be tensors, arrays or sparse matrices of numbers, "
            f"got {type(inputs).__name__} of {array.dtype}; encode it first."
        )
    return from_array(array)


def from_array(array: "np.ndarray[Any, Any]") -> Tensor:
    """The array as a tensor: a view where torch can hold one, else a copy."""
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.as_tensor(array)


def tensors(inputs: Inputs) -> Iterator[Tensor]:
    """Every tensor in the batch, in order."""
    if isinstance(inputs, Tensor):
        yield inputs
    elif isinstance(inputs, Mapping):
        for part in inputs.values():
            yield from tensors(part)
    elif isinstance(inputs, tuple | list):
        for part in inputs:
            yield from tensors(part)


def transform(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> Inputs:
    """The same structure with every tensor changed."""
    if isinstance(inputs, Tensor):
        return change(inputs)
    if isinstance(inputs, Mapping):
        return {name: transform(part, change) for name, part in inputs.items()}
    if isinstance(inputs, tuple | list):
        return tuple(transform(part, change) for part in inputs)
    return inputs


def num_rows(inputs: Inputs) -> int:
    """How many samples the batch holds: the length of its first tensor."""
    first = next(tensors(inputs), None)
    if first is None or first.ndim == 0:
        raise TypeError(
            "Expected `inputs` to be a tensor, or a tuple or dict of tensors, with one row per "
            f"sample, got {type(inputs).__name__}."
        )
    return int(first.shape[0])


def take(inputs: Inputs, rows: Tensor, total: int | None = None) -> Inputs:
    """Those rows of every tensor that has one row per sample; other tensors are shared as they are.

    Args:
        inputs: A batch, or a whole training set.
        rows: Row numbers (int64).
        total: The number of samples; by default that of the first tensor.
    """
    total = num_rows(inputs) if total is None else total

    def pick(part: Tensor) -> Tensor:
        if part.ndim == 0 or part.shape[0] != total:
            return part
        return _take_csr(part, rows) if part.layout == torch.sparse_csr else part[rows]

    return transform(inputs, pick)


def few_rows(inputs: Inputs, count: int = 2) -> Inputs:
    """The first rows, to try something on."""
    total = num_rows(inputs)
    return take(inputs, torch.arange(min(count, total), device="cpu"), total)


def _take_csr(matrix: Tensor, rows: Tensor) -> Tensor:
    starts = matrix.crow_indices()
    counts = starts.diff()[rows]
    pointers = torch.zeros(len(rows) + 1, dtype=starts.dtype, device=starts.device)
    torch.cumsum(counts, dim=0, out=pointers[1:])
    shifts = torch.repeat_interleave(starts[:-1][rows] - pointers[:-1], counts)
    places = torch.arange(len(shifts), device=shifts.device) + shifts
    return torch.sparse_csr_tensor(
        pointers,
        matrix.col_indices()[places],
        matrix.values()[places],
        size=(len(rows), matrix.shape[1]),
        device=starts.device,
        check_invariants=False,  # rows of a valid matrix are valid
    )


def call(model: nn.Module, inputs: Inputs, parameters: dict[str, Tensor] | None = None) -> Tensor:
    """The model's outputs (N, K), with other parameters in place of its own if given.

    Models that return an object or a dict with ``logits``, as Hugging Face's do, are understood.

    Raises:
        ValueError: The model returned no (N, K) tensor.
    """
    several = isinstance(inputs, tuple | list)  # default_collate makes lists of tuples
    args = () if isinstance(inputs, Mapping) else tuple(inputs) if several else (inputs,)
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    if parameters is None:
        outputs = model(*args, **kwargs)
    else:
        outputs = functional_call(model, parameters, args, kwargs)
    if isinstance(outputs, Mapping) and "logits" in outputs:
        outputs = outputs["logits"]
    outputs = getattr(outputs, "logits", outputs)
    wanted = num_rows(inputs)
    if not isinstance(outputs, Tensor) or outputs.ndim != 2 or outputs.shape[0] != wanted:
        given = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(
            f"Expected `model` to return outputs of shape ({wanted}, number of classes) for "
            f"{wanted} inputs, got {given}."
        )
    if outputs.shape[1] < 1:
        raise ValueError("Expected `model` to return at least one output per sample, got 0.")
    return outputs


def check_inputs(model: nn.Module, inputs: Inputs, labels: Tensor) -> None:
    """Refuse a batch that the model cannot take as it stands.

    Raises:
        ValueError: Inputs that are not finite, or on another device or of another floating type
            than the model's parameters; another number of labels than of inputs; inference mode.
        TypeError: Inputs that hold no tensor, or labels that are none.
    """
    if torch.is_inference_mode_enabled():
        raise ValueError(
            "Expected judging to happen outside of torch.inference_mode(), which forbids "
            "derivatives; use torch.no_grad() instead."
        )
    wanted = num_rows(inputs)
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"Expected `labels` to be a tensor, got {type(labels).__name__}; convert it with "
            "torch.as_tensor()."
        )
    if labels.ndim == 0 or len(labels) != wanted:
        raise ValueError(
            f"Expected `labels` to have one entry per sample ({wanted}), "
            f"got shape {tuple(labels.shape)}."
        )
    parameter = next(model.parameters(), None)
    for part in tensors(inputs):
        if parameter is not None:
            _check_match(part, parameter)
        if part.is_floating_point() and not all_finite(_values(part)):
            raise ValueError("Expected `inputs` to be finite, got NaN or infinity.")
    if labels.device != next(tensors(inputs)).device:
        raise ValueError(
            f"Expected `labels` on the device of `inputs` ({next(tensors(inputs)).device}), "
            f"got {labels.device}."
        )


def all_finite(part: Tensor) -> bool:
    """Whether a tensor holds neither NaN nor infinity."""
    part = part.detach()
    # a finite sum says so in one pass; that of finite numbers may overflow
    return math.isfinite(part.sum().item()) or bool(part.isfinite().all())


def _values(part: Tensor) -> Tensor:
    return part.values() if part.layout == torch.sparse_csr else part


def _check_match(part: Tensor, parameter: nn.Parameter) -> None:
    if part.layout not in (torch.strided, torch.sparse_csr):
        raise ValueError(
            f"Expected `inputs` to be dense or CSR, got {part.layout}; convert them with "
            ".to_sparse_csr()."
        )
    if part.device != parameter.device:
        raise ValueError(
            f"Expected `inputs` on the device of the model ({parameter.device}), got {part.device}."
        )
    casts = torch.is_autocast_enabled(part.device.type)
    if part.is_floating_point() and part.dtype != parameter.dtype and not casts:
        raise ValueError(
            f"Expected `inputs` in the type of the model's parameters ({parameter.dtype}), got "
            f"{part.dtype}; convert one of them with .to()."
        )


def check_outputs(model: nn.Module, outputs: Tensor) -> None:
    """Refuse outputs that are not finite, naming the parameter that is to blame.

    Raises:
        ValueError: NaN or infinity in the outputs.
    """
    if all_finite(outputs):
        return
    for name, parameter in model.named_parameters():
        if not all_finite(parameter):
            raise ValueError(
                f"Expected finite model weights, got NaN or infinity in parameter {name!r}; "
                "lower the learning rate or restore an earlier state."
            )
    raise ValueError(
        "Expected finite model outputs, got NaN or infinity from finite weights and inputs; "
        "look for an overflow in the model's forward."
    )

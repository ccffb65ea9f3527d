"""Forward mode: one exact directional derivative serves every candidate label."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks

from agra.gradients.engine import Engine, Gradient, Products, Trace, plain_kernels
from agra.gradients.tangents import FusedTangents
from agra.inputs import Inputs, call, few_rows, num_rows, take, tensors

# what sharing may add to the memory of training, as a share of it or in bytes, whichever is more
_SHARE, _BYTES = 0.2, 2**25
_FEW = 8  # parts of fewer rows are slower than not sharing


class ForwardEngine(Engine):
    """u_t = J_t g by forward automatic differentiation; no norms."""

    name = "forward"
    has_norms = False

    def __init__(self) -> None:
        self._rows_for: dict[tuple[torch.Size, ...], int] = {}  # a memo, by the shapes of inputs

    def refusal(self, model: nn.Module, inputs: Inputs, names: list[str]) -> str | None:
        chosen = set(names)
        gradient = {n: p.detach() for n, p in model.named_parameters() if n in chosen}
        try:
            self.trace(model, inputs, gradient, graph=False)
        except (NotImplementedError, RuntimeError) as error:
            return f"no forward derivative: {str(error).splitlines()[0]}"
        return None

    def trace(
        self, model: nn.Module, inputs: Inputs, comparison_gradient: Gradient, *, graph: bool
    ) -> "DirectionTrace":
        rows = self._rows_at_once(model, inputs) if graph else 0
        with _kernels(model), torch.set_grad_enabled(rows > 0):
            if not rows:
                return DirectionTrace(*_push(model, inputs, comparison_gradient))
            total = num_rows(inputs)
            pairs = [
                _push(model, take(inputs, part, total), comparison_gradient)
                for part in torch.arange(total, device="cpu").split(rows)
            ]
            return DirectionTrace(*(torch.cat(parts) for parts in zip(*pairs, strict=True)))

    def _rows_at_once(self, model: nn.Module, inputs: Inputs) -> int:
        """How many rows may have tangents and the update's graph together; 0 to share no graph.

        The graph records the tangents too, until the outputs are there: sharing the update's
        forward pass with all rows at once would double the memory of activations.
        """
        shapes = tuple(part.shape for part in tensors(inputs))
        if shapes not in self._rows_for:
            self._rows_for[shapes] = _plan(model, inputs)
        return self._rows_for[shapes]


class DirectionTrace(Trace):
    def __init__(self, outputs: Tensor, directions: Tensor) -> None:
        self.outputs = outputs
        self._directions = directions

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        directions = self._directions.to(output_gradients.dtype)
        return Products(torch.einsum("nck,nk->nc", output_gradients, directions))


@contextmanager
def _kernels(model: nn.Module) -> Iterator[None]:
    with plain_kernels(model), FusedTangents():
        yield


def _push(model: nn.Module, inputs: Inputs, gradient: Gradient) -> tuple[Tensor, Tensor]:
    """Outputs, and how they move when the weights move along the gradient."""
    with forward_ad.dual_level():
        duals = {
            name: p if torch.is_grad_enabled() else p.detach()
            for name, p in model.named_parameters()
        }
        for name, part in gradient.items():
            duals[name] = forward_ad.make_dual(duals[name], part.to(duals[name].dtype))
        outputs, directions = forward_ad.unpack_dual(call(model, inputs, duals))
    return outputs, torch.zeros_like(outputs) if directions is None else directions.detach()


def _plan(model: nn.Module, inputs: Inputs) -> int:
    total, few = num_rows(inputs), few_rows(inputs)
    along = {name: part.detach() for name, part in model.named_parameters() if part.requires_grad}
    fused, together = _saved_bytes(model, lambda: call(model, few))
    with _kernels(model):
        plain, _ = _saved_bytes(model, lambda: call(model, few))
        pushed, _ = _saved_bytes(model, lambda: _push(model, few, along)[0])
        alone = call(model, few_rows(few, 1))
    tolerance = 1e3 * torch.finfo(alone.dtype).eps
    if not torch.allclose(together[:1], alone, tolerance, tolerance):
        return 0  # rows that depend on their neighbours must stay together
    weights = sum(part.numel() * part.element_size() for part in model.parameters())
    all_rows = total / max(1, len(together))
    budget = max(_SHARE * (3 * weights + fused * all_rows), _BYTES)
    budget -= (plain - fused) * all_rows  # plain kernels keep more than fused ones
    rows = int(budget * len(together) / max(1, pushed - plain))
    if rows < min(_FEW, total) or not total:
        return 0
    return -(-total // -(-total // rows))  # parts of equal size, so that none is too small


def _saved_bytes(model: nn.Module, run: Callable[[], Tensor]) -> tuple[int, Tensor]:
    """What a forward pass keeps besides the weights: for its graph, and in tangents."""
    kept = {part.data_ptr(): 0 for part in model.parameters()}

    def count(part: Tensor) -> Tensor:
        for kind in forward_ad.unpack_dual(part):  # a tangent stays with its tensor
            if kind is not None:
                kept.setdefault(kind.data_ptr(), kind.nbytes)
        return part

    with torch.enable_grad(), saved_tensors_hooks(count, lambda part: part):
        outputs = run()
    return sum(kept.values()), outputs.detach()

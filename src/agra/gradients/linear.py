"""The closed form for one linear layer: nothing but a product with the rows themselves."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from agra.gradients.engine import Engine, Gradient, Products, Trace, squared_norm
from agra.gradients.parameters import linear_layer
from agra.inputs import Inputs, call


class LinearEngine(Engine):
    """One linear layer on dense or CSR rows.

    The gradient of sample t under a label is the outer product of its output gradient and its row
    x_t, so its dot product with G is that output gradient times G x_t.
    """

    name = "linear"

    def refusal(self, model: nn.Module, inputs: Inputs, names: list[str]) -> str | None:
        if linear_layer(model) is None:
            return f"{type(model).__name__} is not a single linear layer"
        if not isinstance(inputs, Tensor):
            return "a linear layer takes one tensor of rows"
        return None

    def trace(
        self, model: nn.Module, inputs: Inputs, comparison_gradient: Gradient, *, graph: bool
    ) -> "LinearTrace":
        with torch.set_grad_enabled(graph):
            outputs = call(model, inputs)
        parts = {name.rpartition(".")[2]: part for name, part in comparison_gradient.items()}
        rows = inputs if inputs.layout == torch.sparse_csr else inputs.flatten(start_dim=1)
        directions = torch.zeros_like(outputs, requires_grad=False)
        lengths = torch.zeros(len(outputs), dtype=outputs.dtype, device=outputs.device)
        if "weight" in parts:
            directions, lengths = rows @ parts["weight"].T, _squared_row_norms(rows)
        if "bias" in parts:
            directions, lengths = directions + parts["bias"], lengths + 1
        return LinearTrace(outputs, directions, lengths, squared_norm(comparison_gradient))

    def compare_labels(
        self,
        model: nn.Module,
        inputs: Inputs,
        label_gradients: Gradient,
        derive: Callable[[Tensor], Tensor],
        *,
        graph: bool,
        norms: bool,
    ) -> tuple[Tensor, Products]:
        # the rows of one gradient: one pass serves all labels, and norms cost nothing
        trace = self.trace(model, inputs, label_gradients, graph=graph)
        per_row = [part.view(len(part), -1).square().sum(1) for part in label_gradients.values()]
        trace.comparison_squared_norm = torch.stack(per_row).sum(dim=0)
        return trace.outputs, trace.compare_labels(derive(trace.outputs))


class LinearTrace(Trace):
    """What a linear layer gave for a batch.

    Args:
        outputs: (N, K).
        directions: (N, K), how the outputs move when the weights move along the comparison
            gradient.
        squared_row_norms: (N,), of the rows, one more if the bias counts; None for no norms.
        comparison_squared_norm: Of the comparison gradient; for several labels (K,), of its rows.
    """

    def __init__(
        self,
        outputs: Tensor,
        directions: Tensor,
        squared_row_norms: Tensor | None = None,
        comparison_squared_norm: Tensor | None = None,
    ) -> None:
        self.outputs, self._directions = outputs, directions
        self._lengths, self.comparison_squared_norm = squared_row_norms, comparison_squared_norm

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        directions = self._directions.to(output_gradients.dtype).unsqueeze(1)
        dots = torch.linalg.vecdot(output_gradients, directions)
        if self._lengths is None:
            return Products(dots)
        norms = torch.linalg.vecdot(output_gradients, output_gradients)
        return Products(dots, norms * self._lengths.unsqueeze(1), self.comparison_squared_norm)

    def compare_labels(self, output_gradients: Tensor) -> Products:
        """Label by label: output k (N, K) against row k of the comparison gradient."""
        dots = output_gradients * self._directions
        if self._lengths is None:
            return Products(dots)
        norms = output_gradients.square() * self._lengths.unsqueeze(1)
        return Products(dots, norms, self.comparison_squared_norm)


def _squared_row_norms(rows: Tensor) -> Tensor:
    if rows.layout != torch.sparse_csr:
        return torch.linalg.vecdot(rows, rows)
    counts = rows.crow_indices().diff()
    owner = torch.repeat_interleave(torch.arange(len(counts), device=rows.device), counts)
    sums = torch.zeros(len(counts), dtype=rows.dtype, device=rows.device)
    return sums.index_add_(0, owner, rows.values().square())

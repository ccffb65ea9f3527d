"""The closed form for a linear model: the paper's own, and the cheapest."""

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
        return LinearTrace(outputs, inputs, comparison_gradient)

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
        return trace.outputs, trace.compare_rows(derive(trace.outputs))


class LinearTrace(Trace):
    def __init__(self, outputs: Tensor, inputs: Tensor, gradient: Gradient) -> None:
        self.outputs = outputs
        self._gradient = gradient
        self._parts = {name.rpartition(".")[2]: part for name, part in gradient.items()}
        self._rows = inputs if inputs.layout == torch.sparse_csr else inputs.flatten(start_dim=1)

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        directions = self._directions().to(output_gradients.dtype)
        dots = torch.einsum("nck,nk->nc", output_gradients, directions)
        norms = output_gradients.square().sum(dim=2) * self._row_norms().unsqueeze(1)
        return Products(dots, norms, squared_norm(self._gradient))

    def compare_rows(self, output_gradients: Tensor) -> Products:
        """Label by label: output k against row k of the comparison gradient."""
        per_row = [part.view(len(part), -1).square().sum(dim=1) for part in self._parts.values()]
        return Products(
            dots=output_gradients * self._directions(),
            squared_norms=output_gradients.square() * self._row_norms().unsqueeze(1),
            comparison_squared_norm=torch.stack(per_row).sum(dim=0),
        )

    def _directions(self) -> Tensor:
        """How the outputs move when the weights move along the comparison gradient: (N, K)."""
        directions = torch.zeros_like(self.outputs, requires_grad=False)
        if "weight" in self._parts:
            directions = self._rows @ self._parts["weight"].T
        return directions + self._parts["bias"] if "bias" in self._parts else directions

    def _row_norms(self) -> Tensor:
        norms = torch.zeros(len(self.outputs), dtype=self.outputs.dtype, device=self.outputs.device)
        if "weight" in self._parts:
            norms = _squared_row_norms(self._rows)
        return norms + 1 if "bias" in self._parts else norms


def _squared_row_norms(rows: Tensor) -> Tensor:
    if rows.layout != torch.sparse_csr:
        return torch.linalg.vecdot(rows, rows)
    counts = rows.crow_indices().diff()
    owner = torch.repeat_interleave(torch.arange(len(counts)), counts)
    sums = torch.zeros(len(counts), dtype=rows.dtype)
    return sums.index_add_(0, owner, rows.values().square())

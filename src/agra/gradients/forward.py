"""Forward mode: one exact directional derivative serves every candidate label."""

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from agra.gradients.engine import Engine, Gradient, Products, Trace, plain_kernels, squared_norm
from agra.inputs import Inputs, call


class ForwardEngine(Engine):
    """u_t = J_t g by forward automatic differentiation; no norms."""

    name = "forward"
    has_norms = False

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
        # a graph under forward mode would record the tangents too, and double the memory
        with torch.no_grad(), plain_kernels(model), forward_ad.dual_level():
            duals = {name: parameter.detach() for name, parameter in model.named_parameters()}
            for name, part in comparison_gradient.items():
                duals[name] = forward_ad.make_dual(duals[name], part.to(duals[name].dtype))
            outputs, directions = forward_ad.unpack_dual(call(model, inputs, duals))
        return DirectionTrace(outputs, directions, comparison_gradient)


class DirectionTrace(Trace):
    def __init__(self, outputs: Tensor, directions: Tensor | None, gradient: Gradient) -> None:
        self.outputs = outputs
        self._directions = torch.zeros_like(outputs) if directions is None else directions
        self._gradient = gradient

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        directions = self._directions.to(output_gradients.dtype)
        dots = torch.einsum("nck,nk->nc", output_gradients, directions)
        return Products(dots, torch.full_like(dots, torch.nan), squared_norm(self._gradient))

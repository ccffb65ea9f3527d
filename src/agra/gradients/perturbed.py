"""A second forward pass with the weights moved a little along the comparison gradient."""

import torch
from torch import Tensor, nn

from agra.gradients.engine import Engine, Gradient, Products, Trace, squared_norm
from agra.inputs import Inputs, call


class PerturbedEngine(Engine):
    """u_t ~ (f(w + h g) - f(w)) / h: right to rounding, no norms, any deterministic module."""

    name = "perturbed"
    exact = False
    has_norms = False

    def refusal(self, model: nn.Module, inputs: Inputs, names: list[str]) -> str | None:
        chosen = set(names)
        for name, parameter in model.named_parameters():
            if name in chosen and torch.finfo(parameter.dtype).bits < 32:
                return f"parameter {name!r} is {parameter.dtype}: a small step would be rounded off"
        with torch.no_grad():
            if not torch.equal(call(model, inputs), call(model, inputs)):
                return "the model's outputs differ from call to call on the same inputs"
        return None

    def trace(
        self, model: nn.Module, inputs: Inputs, comparison_gradient: Gradient, *, graph: bool
    ) -> "PerturbedTrace":
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        with torch.no_grad():
            step = _step_size(parameters, comparison_gradient)
            for name, part in comparison_gradient.items():
                parameters[name] = torch.add(parameters[name], part, alpha=step)
            moved = call(model, inputs, parameters)
        del parameters  # the moved weights make room for the update's graph
        with torch.set_grad_enabled(graph):
            outputs = call(model, inputs)
        return PerturbedTrace(outputs, moved.sub_(outputs.detach()).div_(step))


class PerturbedTrace(Trace):
    def __init__(self, outputs: Tensor, directions: Tensor) -> None:
        self.outputs = outputs
        self._directions = directions

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        directions = self._directions.to(output_gradients.dtype)
        dots = torch.einsum("nck,nk->nc", output_gradients, directions)
        return Products(dots)


def _step_size(parameters: Gradient, gradient: Gradient) -> float:
    """Half the digits: smaller drowns in rounding, larger in curvature."""
    precision = max(torch.finfo(part.dtype).eps for part in gradient.values())
    length = float(squared_norm(gradient)) ** 0.5
    if length == 0:
        return 1.0  # nowhere to go
    size = float(squared_norm({name: parameters[name] for name in gradient})) ** 0.5
    return precision**0.5 * (1 + size) / length

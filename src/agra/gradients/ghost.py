"""Dot products and norms from what enters and leaves each layer, without any sample's gradient."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from agra.gradients.engine import (
    Engine,
    Gradient,
    Products,
    Trace,
    sample_gradient,
    squared_norm,
)
from agra.gradients.layers import RULES, LayerRule
from agra.inputs import Inputs, call, take


class GhostEngine(Engine):
    """Linear, Conv1d, Conv2d, Embedding, LayerNorm and GroupNorm layers, tied or not."""

    name = "ghost"

    def refusal(self, model: nn.Module, inputs: Inputs, names: list[str]) -> str | None:
        layers = _layers_of(model, set(names))
        for module, own in layers.items():
            for own_name, name in own.items():
                rule = RULES.get(type(module).forward, {}).get(own_name)
                if rule is None:
                    return f"parameter {name!r} belongs to a {type(module).__name__}"
                if reason := rule.refusal(module):
                    return f"parameter {name!r} belongs to an {reason}"
        return _self_check(self, model, inputs, names)

    def trace(
        self, model: nn.Module, inputs: Inputs, comparison_gradient: Gradient, *, graph: bool
    ) -> "GhostTrace":
        sink, uses = _Sink(), list[_Use]()
        hooks = []
        for module, names in _layers_of(model, set(comparison_gradient)).items():
            record = _recorder(uses, sink, names)
            hooks.append(module.register_forward_hook(record, with_kwargs=True))
        try:
            with torch.enable_grad():
                outputs = call(model, inputs)
        finally:
            for hook in hooks:
                hook.remove()
        return GhostTrace(outputs, uses, sink, comparison_gradient)


@dataclass
class _Use:
    """One call of a layer."""

    layer: nn.Module
    names: dict[str, str]  # "weight" -> "body.0.weight"
    inputs: Tensor
    edge: GradientEdge
    first: bool  # no compared layer can come before it

    def rule(self, own_name: str) -> LayerRule:
        return RULES[type(self.layer).forward][own_name]


@dataclass
class _Sink:
    """Where gradients that come back to a layer go while a comparison runs.

    Hooks in the graph know only this: one that knew the trace would keep the graph alive forever.
    """

    receive: Callable[[int, Tensor], None] | None = None


class GhostTrace(Trace):
    def __init__(self, outputs: Tensor, uses: list[_Use], sink: _Sink, gradient: Gradient) -> None:
        self.outputs = outputs
        self._uses, self._sink, self._gradient = uses, sink, gradient

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        dots = torch.zeros_like(output_gradients[:, :, 0])
        norms = torch.full_like(dots, torch.nan)
        for column in range(dots.shape[1]):
            asked = wanted is not None and bool(wanted[:, column].any())
            sums = _Sums(self._uses, self._gradient, asked, len(dots))
            self._send_back(output_gradients[:, column], sums)
            dots[:, column] = sums.dots
            if asked:
                norms[:, column] = sums.squared_norms()
        if wanted is None:
            return Products(dots)
        return Products(dots, norms, squared_norm(self._gradient))

    def _send_back(self, output_gradient: Tensor, sums: "_Sums") -> None:
        self._sink.receive = sums.receive
        try:
            # reaching the first layers passes through all those after them
            self._backward(output_gradient, [use for use in self._uses if use.first])
            self._backward(output_gradient, [self._uses[i] for i in sums.missing()])
        finally:
            self._sink.receive = None

    def _backward(self, output_gradient: Tensor, uses: list[_Use]) -> None:
        if uses and self.outputs.requires_grad:
            torch.autograd.grad(
                self.outputs,
                [use.edge for use in uses],
                output_gradient.to(self.outputs.dtype),
                retain_graph=True,
                allow_unused=True,
            )


@dataclass
class _Sums:
    """Products summed over layers as the gradients come back, one layer at a time."""

    uses: list[_Use]
    gradient: Gradient
    norms: bool
    samples: int
    dots: Tensor = field(init=False)
    _squares: Tensor = field(init=False)
    _seen: set[int] = field(default_factory=set)
    _held: dict[str, list[tuple[_Use, str, Tensor]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        some = next(iter(self.gradient.values()))
        self.dots = some.new_zeros(self.samples)
        self._squares = some.new_zeros(self.samples)
        self._count = Counter(name for use in self.uses for name in use.names.values())

    def missing(self) -> list[int]:
        return [i for i in range(len(self.uses)) if i not in self._seen]

    def receive(self, index: int, back: Tensor) -> None:
        if index in self._seen:
            return
        self._seen.add(index)
        use = self.uses[index]
        for own_name, name in use.names.items():
            tied = self._count[name] > 1
            dots, squares = use.rule(own_name).compare(
                use.layer, use.inputs, back, self.gradient[name], self.norms and not tied
            )
            self.dots += dots
            if squares is not None:
                self._squares += squares
            elif self.norms:  # the norm of a sum needs all its terms
                self._held.setdefault(name, []).append((use, own_name, back))

    def squared_norms(self) -> Tensor:
        for name, terms in self._held.items():
            step = max(1, 2**21 // self.gradient[name].numel())
            for start in range(0, self.samples, step):
                rows = slice(start, start + step)
                own = [
                    use.rule(own_name).gradients(use.layer, use.inputs[rows], back[rows])
                    for use, own_name, back in terms
                ]
                self._squares[rows] += torch.stack(own).sum(dim=0).flatten(1).square().sum(dim=1)
        return self._squares


def _layers_of(model: nn.Module, names: set[str]) -> dict[nn.Module, dict[str, str]]:
    """Each layer that holds a compared parameter, tied ones under their first name."""
    first = {id(p): name for name, p in model.named_parameters() if name in names}
    found = {
        module: {
            own: first[id(p)] for own, p in module.named_parameters(recurse=False) if id(p) in first
        }
        for module in model.modules()
    }
    return {module: own for module, own in found.items() if own}


def _recorder(uses: list[_Use], sink: _Sink, names: dict[str, str]) -> Callable[..., None]:
    def record(
        layer: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor], output: Tensor
    ) -> None:
        if not output.requires_grad:
            return
        given = args[0] if args else kwargs["input"]
        index = len(uses)
        edge = get_gradient_edge(output)
        uses.append(_Use(layer, names, given.detach(), edge, not given.requires_grad))

        def pass_on(back: Tensor) -> None:
            if sink.receive is not None:
                sink.receive(index, back.detach())

        output.register_hook(pass_on)

    return record


def _self_check(
    engine: GhostEngine, model: nn.Module, inputs: Inputs, names: list[str]
) -> str | None:
    """Hooks do not see a weight that is used outside its layer, or samples that are not rows."""
    draws = torch.Generator("cpu").manual_seed(0)
    chosen = {name: p for name, p in model.named_parameters() if name in set(names)}
    gradient = {
        name: torch.randn(p.shape, generator=draws, device="cpu").to(p.device, p.dtype)
        for name, p in chosen.items()
    }
    try:
        trace = engine.trace(model, inputs, gradient, graph=False)
        shape = (len(trace.outputs), 1, trace.outputs.shape[1])
        derivatives = torch.randn(shape, generator=draws, device="cpu").to(trace.outputs)
        products = trace.compare(derivatives, torch.ones(shape[:2], dtype=torch.bool))
        assert products.squared_norms is not None
    except (RuntimeError, IndexError) as error:
        return f"a layer's samples are not its rows: {str(error).splitlines()[0]}"
    for t in range(shape[0]):
        row = take(inputs, torch.tensor([t], device=trace.outputs.device), shape[0])
        own = sample_gradient(model, row, derivatives[t, 0], names)
        dot = torch.stack([(own[name] * part).sum() for name, part in gradient.items()]).sum()
        scale = (squared_norm(own) * squared_norm(gradient)).sqrt()
        wrong_dot = (products.dots[t, 0] - dot).abs() > 1e-2 * scale
        wrong_norm = (products.squared_norms[t, 0] - squared_norm(own)).abs() > (
            1e-2 * squared_norm(own)
        )
        if bool(wrong_dot | wrong_norm):
            return "its answer is not the gradient: a weight is used outside its layer's forward"
    return None

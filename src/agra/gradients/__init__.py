"""The engines, and the choice of one. The only place that knows them all."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import torch
from torch import Tensor, nn

from agra.gradients.as_found import judging
from agra.gradients.engine import Engine, Gradient, Products, Trace
from agra.gradients.forward import ForwardEngine
from agra.gradients.ghost import GhostEngine
from agra.gradients.linear import LinearEngine
from agra.gradients.per_sample import PerSampleEngine
from agra.gradients.perturbed import PerturbedEngine
from agra.inputs import Inputs, call, few_rows, take
from agra.names import check_name

# in the order in which "auto" tries them: the cheapest exact one first, and of two alike the one
# that has norms too
ENGINES: Mapping[str, Callable[[], Engine]] = MappingProxyType(
    {
        engine.name: engine
        for engine in (LinearEngine, GhostEngine, ForwardEngine, PerturbedEngine, PerSampleEngine)
    }
)


def choose_engine(
    engine: str, model: nn.Module, inputs: Inputs, names: list[str], *, norms: bool = False
) -> Engine:
    """The engine of that name, or for "auto" the first that does not refuse.

    Args:
        engine: "auto" or a name in ``ENGINES``.
        model: The model to judge with.
        inputs: A batch; two of its rows are tried.
        names: The parameters to compare.
        norms: Whether the rule may ask for norms. Where the engine has none, another one adds
            them, on just the samples that need them.

    Raises:
        ValueError: An unknown name, or an engine that refuses, with its reason.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))
        >>> choose_engine("auto", model, torch.eye(2), ["0.weight"], norms=True).name
        'ghost'
    """
    check_name("engine", engine, ["auto", *ENGINES])
    rows = few_rows(inputs)
    with judging(model):
        with torch.no_grad():
            call(model, rows)  # a model that cannot run at all says so in its own words
        if engine == "auto":
            return _automatic(model, rows, names, norms=norms)
        chosen = ENGINES[engine]()
        reason = chosen.refusal(model, rows, names)
        if reason and engine == PerSampleEngine.name:
            return PerSampleEngine(vectorised=False)
        if reason:
            raise ValueError(
                f"Expected `engine` to fit the model, but {engine!r} refuses: {reason}. "
                'Use engine="auto".'
            )
        return _with_norms(chosen, model, rows, names) if norms else chosen


def refusals(model: nn.Module, inputs: Inputs, names: list[str]) -> dict[str, str | None]:
    """For every engine the reason why it refuses the model, or None if it does not.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))
        >>> refusals(model, torch.eye(2), ["0.weight"])["linear"]
        'Sequential is not a single linear layer'
    """
    rows = few_rows(inputs)
    with judging(model):
        return {name: make().refusal(model, rows, names) for name, make in ENGINES.items()}


def _automatic(model: nn.Module, rows: Inputs, names: list[str], *, norms: bool) -> Engine:
    for candidate in (make() for make in ENGINES.values()):
        if candidate.refusal(model, rows, names) is None:
            return _with_norms(candidate, model, rows, names) if norms else candidate
    return PerSampleEngine(vectorised=False)


def _with_norms(chosen: Engine, model: nn.Module, rows: Inputs, names: list[str]) -> Engine:
    if chosen.has_norms:
        return chosen
    for helper in (GhostEngine(), PerSampleEngine()):
        if helper.refusal(model, rows, names) is None:
            return PairedEngine(chosen, helper)
    return PairedEngine(chosen, PerSampleEngine(vectorised=False))


class PairedEngine(Engine):
    """Dot products from one engine, norms from another where they are asked for."""

    def __init__(self, dots: Engine, norms: Engine) -> None:
        self.dots, self.norms = dots, norms
        self.name = f"{dots.name}+{norms.name}"  # type: ignore[misc]  # shown, never looked up
        self.exact = dots.exact  # type: ignore[misc]  # as above

    def refusal(self, model: nn.Module, inputs: Inputs, names: list[str]) -> str | None:
        return self.dots.refusal(model, inputs, names) or self.norms.refusal(model, inputs, names)

    def trace(
        self, model: nn.Module, inputs: Inputs, comparison_gradient: Gradient, *, graph: bool
    ) -> "PairedTrace":
        def norms(output_gradients: Tensor, wanted: Tensor) -> Products:
            asked = wanted.any(dim=1).nonzero().squeeze(1)
            part = take(inputs, asked, len(wanted))
            trace = self.norms.trace(model, part, comparison_gradient, graph=False)
            found = torch.full_like(output_gradients[:, :, 0], torch.nan)
            products = trace.compare(output_gradients[asked], wanted[asked])
            assert products.squared_norms is not None
            found[asked] = products.squared_norms
            return replace(products, squared_norms=found)

        return PairedTrace(self.dots.trace(model, inputs, comparison_gradient, graph=graph), norms)


class PairedTrace(Trace):
    def __init__(self, dots: Trace, norms: Callable[[Tensor, Tensor], Products]) -> None:
        self.outputs = dots.outputs
        self._dots, self._norms = dots, norms

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        products = self._dots.compare(output_gradients)
        if wanted is None or not bool(wanted.any()):
            return products
        norms = self._norms(output_gradients, wanted)
        return Products(products.dots, norms.squared_norms, norms.comparison_squared_norm)

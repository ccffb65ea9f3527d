"""Every sample's gradient in full: the fallback that asks the least of the model."""

import warnings

import torch
from torch import Tensor, nn
from torch.func import vjp, vmap

from agra.gradients.engine import (
    Engine,
    Gradient,
    Products,
    Trace,
    plain_kernels,
    sample_gradient,
    squared_norm,
)
from agra.inputs import Inputs, call, num_rows, take, tensors, transform

_CHUNK_NUMBERS = 2**25  # how many numbers of per-sample gradients may exist at once


class PerSampleEngine(Engine):
    """Gradients sample by sample: vectorised, or one after the other where torch cannot.

    Attributes:
        vectorised: Whether to use ``vmap``; without it nothing is refused.
    """

    name = "per-sample"

    def __init__(self, *, vectorised: bool = True) -> None:
        self.vectorised = vectorised

    def refusal(self, model: nn.Module, inputs: Inputs, names: list[str]) -> str | None:
        if not self.vectorised:
            return None
        chosen = set(names)
        gradient = {n: p.detach() for n, p in model.named_parameters() if n in chosen}
        try:
            with warnings.catch_warnings():
                # torch warns where it would loop over the samples inside one operator
                warnings.filterwarnings("error", message=".*performance drop")
                trace = self.trace(model, inputs, gradient, graph=False)
                trace.compare(torch.ones_like(trace.outputs).unsqueeze(1))
        except (NotImplementedError, RuntimeError, ValueError, UserWarning) as error:
            return f"no vectorised gradient: {str(error).splitlines()[0]}"
        return None

    def trace(
        self, model: nn.Module, inputs: Inputs, comparison_gradient: Gradient, *, graph: bool
    ) -> "PerSampleTrace":
        with torch.set_grad_enabled(graph):
            outputs = call(model, inputs)
        return PerSampleTrace(self, model, inputs, comparison_gradient, outputs)


class PerSampleTrace(Trace):
    def __init__(
        self,
        engine: PerSampleEngine,
        model: nn.Module,
        inputs: Inputs,
        comparison_gradient: Gradient,
        outputs: Tensor,
    ) -> None:
        self.outputs = outputs
        self._engine, self._model, self._inputs = engine, model, inputs
        self._gradient = comparison_gradient

    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        compare = self._vectorised if self._engine.vectorised else self._one_by_one
        dots, norms = compare(output_gradients.to(self.outputs.dtype))
        return Products(dots, norms, squared_norm(self._gradient))

    def _vectorised(self, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        if not len(output_gradients):  # vmap refuses
            empty = output_gradients[:, :, 0]
            return empty, empty
        parameters = {name: p.detach() for name, p in self._model.named_parameters()}
        chosen = {name: parameters.pop(name) for name in self._gradient}
        total = num_rows(self._inputs)
        flat = list(tensors(self._inputs))
        dims = [0 if part.ndim and part.shape[0] == total else None for part in flat]

        def one(derivatives: Tensor, *parts: Tensor) -> tuple[Tensor, Tensor]:
            row = _rebuild(self._inputs, parts, dims)

            def outputs(values: Gradient) -> Tensor:
                return call(self._model, row, {**parameters, **values})[0]

            pull_back = vjp(outputs, chosen)[1]
            sums = [_products(pull_back(d)[0], self._gradient) for d in derivatives.unbind()]
            return torch.stack([s[0] for s in sums]), torch.stack([s[1] for s in sums])

        size = sum(part.numel() for part in chosen.values())
        chunk = max(1, _CHUNK_NUMBERS // max(1, size))
        batched = vmap(one, in_dims=(0, *dims), chunk_size=chunk, randomness="different")
        with plain_kernels(self._model):
            return batched(output_gradients, *flat)

    def _one_by_one(self, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        samples, candidates, _ = output_gradients.shape
        dots = output_gradients.new_zeros(samples, candidates)
        norms = torch.zeros_like(dots)
        total = num_rows(self._inputs)
        for t in range(samples):
            row = take(self._inputs, torch.tensor([t], device=dots.device), total)
            for c in range(candidates):
                own = sample_gradient(
                    self._model, row, output_gradients[t, c], list(self._gradient)
                )
                dots[t, c], norms[t, c] = _products(own, self._gradient)
        return dots, norms


def _products(own: Gradient, other: Gradient) -> tuple[Tensor, Tensor]:
    dots = torch.stack([(own[name] * part).sum() for name, part in other.items()])
    return dots.sum(), squared_norm({name: own[name] for name in other})


def _rebuild(inputs: Inputs, parts: tuple[Tensor, ...], dims: list[int | None]) -> Inputs:
    # each row keeps a batch axis of one, since modules expect batches
    rows = iter(p if d is None else p.unsqueeze(0) for p, d in zip(parts, dims, strict=True))
    return transform(inputs, lambda _: next(rows))

"""Per-sample gradients of one layer from what went in (a) and what came back (b).

One rule per kind of parameter. Each knows its per-sample gradients in full, and where there is a
shorter way to their products, takes it. Nothing here is as large as samples x weights: what has
to be spelled out is spelled out for a few samples at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional, grad

_CHUNK_NUMBERS = 2**20


class LayerRule(ABC):
    """The gradients of one parameter of one kind of layer."""

    def refusal(self, layer: nn.Module) -> str | None:
        """Why this layer's parameter has no such gradients, or None."""
        return None

    @abstractmethod
    def gradients(self, layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        """Per-sample gradients in full: (N, *shape of the parameter)."""

    def numbers(self, layer: nn.Module, a: Tensor, b: Tensor, g: Tensor) -> int:
        """How many numbers one sample's gradient needs while it is computed."""
        return g.numel() + a[:1].numel()

    def compare(
        self, layer: nn.Module, a: Tensor, b: Tensor, g: Tensor, norms: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Dot products with g, and squared norms if wanted: (N,) each."""
        dots, squares = [], []
        for part_a, part_b in _chunks(a, b, self.numbers(layer, a, b, g)):
            own = self.gradients(layer, part_a, part_b).flatten(1)
            dots.append(own @ g.flatten())
            squares.append(torch.linalg.vector_norm(own, dim=1).square() if norms else own[:, 0])
        return torch.cat(dots), torch.cat(squares) if norms else None


class LinearWeight(LayerRule):
    """Inputs (N, *, p) and outputs (N, *, q): the gradient is the sum of outer products."""

    def gradients(self, layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        return _positions(b).mT @ _positions(a)

    def compare(
        self, layer: nn.Module, a: Tensor, b: Tensor, g: Tensor, norms: bool
    ) -> tuple[Tensor, Tensor | None]:
        rows, back = _positions(a), _positions(b)
        positions = rows.shape[1]
        if norms and positions * sum(g.shape) > g.numel():
            return super().compare(layer, a, b, g, norms)  # many positions: shorter in full
        dots = [
            _row_dots(part_rows @ g.T, part_back)
            for part_rows, part_back in _chunks(rows, back, back[:1].numel())
        ]
        return torch.cat(dots), _gram(rows, back) if norms else None


class ConvWeight(LayerRule):
    """Samples side by side as groups of channels: one convolution's gradient is all of theirs."""

    def gradients(self, layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        assert isinstance(layer, nn.Conv1d | nn.Conv2d)
        count, (width, *kernel) = len(a), layer.weight.shape
        flat = isinstance(layer, nn.Conv1d)
        gradient_of = grad.conv1d_weight if flat else grad.conv2d_weight
        own = gradient_of(
            _padded(layer, a).flatten(0, 1).unsqueeze(0),
            (count * width, *kernel),
            b.flatten(0, 1).unsqueeze(0),
            stride=layer.stride,
            dilation=layer.dilation,
            groups=count * layer.groups,
        )
        return own.unflatten(0, (count, width))

    def numbers(self, layer: nn.Module, a: Tensor, b: Tensor, g: Tensor) -> int:
        return g.numel() + 2 * a[:1].numel() + b[:1].numel()

    def compare(
        self, layer: nn.Module, a: Tensor, b: Tensor, g: Tensor, norms: bool
    ) -> tuple[Tensor, Tensor | None]:
        if norms:
            return super().compare(layer, a, b, g, norms)
        assert isinstance(layer, nn.Conv1d | nn.Conv2d)
        dots = [
            _row_dots(layer._conv_forward(part_a, g, None), part_b)
            for part_a, part_b in _chunks(a, b, b[:1].numel())
        ]
        return torch.cat(dots), None


class EmbeddingWeight(LayerRule):
    """Each row of the table collects what came back to the places that looked it up."""

    def refusal(self, layer: nn.Module) -> str | None:
        assert isinstance(layer, nn.Embedding)
        if layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse:
            return "Embedding with max_norm, scale_grad_by_freq or sparse gradients"
        return None

    def gradients(self, layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        assert isinstance(layer, nn.Embedding)
        ids, back = a.flatten(1), self._back(layer, a, b)
        full = back.new_zeros((len(a), *layer.weight.shape))
        return full.scatter_add_(1, ids.unsqueeze(2).expand_as(back), back)

    def compare(
        self, layer: nn.Module, a: Tensor, b: Tensor, g: Tensor, norms: bool
    ) -> tuple[Tensor, Tensor | None]:
        ids, back = a.flatten(1), self._back(layer, a, b)
        dots = torch.einsum("nlq,nlq->n", g[ids], back)
        if not norms:
            return dots, None
        same = ids.unsqueeze(2).eq(ids.unsqueeze(1))
        return dots, ((back @ back.mT) * same).sum(dim=(1, 2))

    def _back(self, layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        assert isinstance(layer, nn.Embedding)
        back = b.flatten(1, -2)
        if layer.padding_idx is not None:
            back = back * a.flatten(1).ne(layer.padding_idx).unsqueeze(2)
        return back


class NormWeight(LayerRule):
    """LayerNorm and GroupNorm: what came back times the normalised input."""

    def gradients(self, layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        if isinstance(layer, nn.LayerNorm):
            normal = functional.layer_norm(a, layer.normalized_shape, eps=layer.eps)
        else:
            assert isinstance(layer, nn.GroupNorm)
            normal = functional.group_norm(a, layer.num_groups, eps=layer.eps)
        return _sum_positions(layer, b * normal)


class Bias(LayerRule):
    """What came back, summed over the positions of a sample."""

    def gradients(self, layer: nn.Module, a: Tensor, b: Tensor) -> Tensor:
        return _sum_positions(layer, b)


def _sum_positions(layer: nn.Module, back: Tensor) -> Tensor:
    if isinstance(layer, nn.LayerNorm):
        between = range(1, back.ndim - len(layer.normalized_shape))
        return back.sum(dim=tuple(between)) if between else back
    if isinstance(layer, nn.Linear):
        return _positions(back).sum(dim=1)
    return back.sum(dim=tuple(range(2, back.ndim))) if back.ndim > 2 else back  # channels first


def _positions(values: Tensor) -> Tensor:
    return values.flatten(1, -2) if values.ndim > 2 else values.unsqueeze(1)


def _gram(a: Tensor, b: Tensor) -> Tensor:
    """The squared norm of b^T a without spelling it out."""
    if a.shape[1] == 1:
        return a.square().sum(dim=(1, 2)) * b.square().sum(dim=(1, 2))
    return torch.einsum("nij,nij->n", a @ a.mT, b @ b.mT)


def _row_dots(a: Tensor, b: Tensor) -> Tensor:
    """Dot products row by row, without a third tensor of that size."""
    return torch.bmm(a.flatten(1).unsqueeze(1), b.flatten(1).unsqueeze(2)).flatten()


def _padded(layer: nn.Conv1d | nn.Conv2d, a: Tensor) -> Tensor:
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    return functional.pad(a, layer._reversed_padding_repeated_twice, mode=mode)


def _chunks(a: Tensor, b: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    rows = max(1, _CHUNK_NUMBERS // max(1, size))
    return list(zip(a.split(rows), b.split(rows), strict=True))


_CONV = {"weight": ConvWeight(), "bias": Bias()}
_NORM = {"weight": NormWeight(), "bias": Bias()}

# by forward, so that a subclass counts only if it computes the same thing
RULES: Mapping[Callable[..., Tensor], Mapping[str, LayerRule]] = MappingProxyType(
    {
        nn.Linear.forward: {"weight": LinearWeight(), "bias": Bias()},
        nn.Conv1d.forward: _CONV,
        nn.Conv2d.forward: _CONV,
        nn.Embedding.forward: {"weight": EmbeddingWeight()},
        nn.LayerNorm.forward: _NORM,
        nn.GroupNorm.forward: _NORM,
    }
)

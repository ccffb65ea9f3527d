"""How a sample's gradient is compared with another gradient, whatever the labels and the loss.

An engine traces the model on a batch of inputs; the trace then answers, for any output gradients
(the derivative of some loss in the outputs), how the samples' gradients stand to the comparison
gradient: dot products, and squared norms where asked for.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from agra.gradients.parameters import linear_layer
from agra.inputs import Inputs, all_finite, call

Gradient = dict[str, Tensor]  # named as model.named_parameters() names them


@dataclass(frozen=True)
class Products:
    """Dot products of samples' gradients with the comparison gradient, and squared norms.

    Attributes:
        dots: (N, C), one column per candidate label.
        squared_norms: (N, C), of the samples' gradients; NaN where they were not asked for, None
            if none was.
        comparison_squared_norm: () or, for several labels, (C,); there with the others.
    """

    dots: Tensor
    squared_norms: Tensor | None = None
    comparison_squared_norm: Tensor | None = None

    def has_norms(self, wanted: Tensor) -> bool:
        """Whether every squared norm that is wanted is there."""
        norms = self.squared_norms
        return norms is not None and not bool((wanted & norms.isnan()).any())

    def check(self) -> None:
        """Refuse what no verdict can come from.

        Raises:
            ValueError: NaN or infinity in the dot products.
        """
        if not all_finite(self.dots):
            raise ValueError(
                "Expected finite gradients, got NaN or infinity from finite outputs; look for a "
                "criterion without a derivative at these outputs, or an overflow in the comparison "
                "gradient."
            )

    def cosine(self, eps: float = 0.0) -> Tensor:
        """The similarity score, Eq. (1): NaN where a norm is missing, 0 for a zero gradient.

        Args:
            eps: Added to the product of the norms, as the published code does with 1e-6.
        """
        # only a zero gradient is orthogonal to everything; its score needs no norm
        zero = self.dots == 0
        if self.squared_norms is None or self.comparison_squared_norm is None:
            return torch.full_like(self.dots, torch.nan).masked_fill_(zero, 0)
        # roots first: the product of the squares leaves the range of single precision
        norms = self.squared_norms.sqrt() * self.comparison_squared_norm.sqrt() + eps
        return (self.dots / norms).masked_fill_(zero, 0)


class Trace(ABC):
    """One pass of a batch through the model.

    Attributes:
        outputs: (N, K). They carry the model's own graph if the engine shares its forward pass.
    """

    outputs: Tensor

    @abstractmethod
    def compare(self, output_gradients: Tensor, wanted: Tensor | None = None) -> Products:
        """Compare samples' gradients with the comparison gradient.

        Args:
            output_gradients: (N, C, K), the derivative of the loss in the outputs, per candidate.
            wanted: (N, C), where squared norms are needed; None for nowhere.
        """


class Engine(ABC):
    """One way to compare gradients. Engines hold no state and never see a label or a loss."""

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    has_norms: ClassVar[bool] = True

    @abstractmethod
    def refusal(self, model: nn.Module, inputs: Inputs, names: list[str]) -> str | None:
        """Why this engine cannot serve the model and those parameters, or None if it can.

        Args:
            model: In the mode in which it is judged.
            inputs: A few rows to try on.
            names: The parameters to compare.
        """

    @abstractmethod
    def trace(
        self, model: nn.Module, inputs: Inputs, comparison_gradient: Gradient, *, graph: bool
    ) -> Trace:
        """Run the model on the inputs, keeping what a comparison needs.

        Args:
            model: In the mode in which it is judged.
            inputs: The update batch.
            comparison_gradient: What the samples' gradients are compared with.
            graph: Whether the outputs should carry the model's graph, for the update to use.
        """

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
        """Compare label by label (Algorithm 2): the outputs (N, K), and products (N, K).

        Args:
            model: In the mode in which it is judged.
            inputs: The update batch.
            label_gradients: As `agra.label_gradients` gives them.
            derive: From outputs (N, K) to output gradients (N, K).
            graph: Whether the outputs should carry the model's graph, for the update to use.
            norms: Whether squared norms are needed.
        """
        outputs, columns = torch.empty(0), []
        for label in range(len(next(iter(label_gradients.values())))):
            gradient = _gradient_of_label(model, label_gradients, label)
            trace = self.trace(model, inputs, gradient, graph=graph and label == 0)
            if label == 0:
                outputs, derivatives = trace.outputs, derive(trace.outputs)
            only = torch.zeros_like(derivatives)
            only[:, label] = derivatives[:, label]
            wanted = torch.full((len(only), 1), norms, device=only.device)
            columns.append(trace.compare(only.unsqueeze(1), wanted))
        return outputs, _side_by_side(columns)


def _side_by_side(columns: list[Products]) -> Products:
    dots = torch.cat([part.dots for part in columns], dim=1)
    norms = [part.squared_norms for part in columns if part.squared_norms is not None]
    lengths = [p.comparison_squared_norm for p in columns if p.comparison_squared_norm is not None]
    if len(norms) < len(columns):
        return Products(dots)
    return Products(dots, torch.cat(norms, dim=1), torch.stack(lengths))


def squared_norm(gradient: Gradient) -> Tensor:
    """The squared Euclidean norm over all parameters: a scalar."""
    flat = [part.flatten() for part in gradient.values()]
    first, *rest = [part.dot(part) for part in flat]
    return first if not rest else torch.stack([first, *rest]).sum()


def _gradient_of_label(model: nn.Module, label_gradients: Gradient, label: int) -> Gradient:
    if linear_layer(model) is None:
        return {name: part[label] for name, part in label_gradients.items()}
    gradient = {name: torch.zeros_like(part) for name, part in label_gradients.items()}
    for name, part in label_gradients.items():
        gradient[name][label] = part[label]
    return gradient


def leaves(model: nn.Module, names: list[str]) -> Gradient:
    """Detached twins of all parameters, those named ready to be differentiated.

    With them no hook on the caller's parameters fires and no ``.grad`` is touched.
    """
    chosen = set(names)
    return {
        name: parameter.detach().requires_grad_(name in chosen)
        for name, parameter in model.named_parameters()
    }


def pull_back(
    values: Gradient, names: list[str], outputs: Tensor, output_gradient: Tensor | None = None
) -> Gradient:
    """The gradient in the named values: of a scalar, or along an output gradient (N, K)."""
    gradients = torch.autograd.grad(
        outputs,
        [values[name] for name in names],
        output_gradient,
        retain_graph=output_gradient is not None,
        allow_unused=True,
        materialize_grads=True,
    )
    return dict(zip(names, gradients, strict=True))


def sample_gradient(
    model: nn.Module, row: Inputs, output_gradient: Tensor, names: list[str]
) -> Gradient:
    """The gradient of one sample: a batch of one row, pulled back from its output gradient (K)."""
    with torch.enable_grad():
        values = leaves(model, names)
        outputs = call(model, row, values)
        return pull_back(values, names, outputs, output_gradient.to(outputs.dtype).view(1, -1))


@contextmanager
def plain_kernels(model: nn.Module) -> Iterator[None]:
    """Fused kernels have no derivative rules; the same mathematics in plain ones has them."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    fused_lstm = torch.backends.mkldnn.enabled
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        if any(isinstance(module, nn.LSTM) for module in model.modules()):
            torch.backends.mkldnn.enabled = False  # type: ignore[assignment]  # a property
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        torch.backends.mkldnn.enabled = fused_lstm

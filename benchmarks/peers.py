"""AGRA's step written by hand, with every sample's gradient in memory.

Cross-entropy is a mean over samples, so the update is the mean of the kept gradients, and needs no
second pass. The comparison gradient is a plain backward pass on another batch.
"""

from collections.abc import Callable

import torch
from models import ROWS, Problem
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

Step = Callable[[Tensor, Tensor, Tensor], object]  # inputs, labels, ids


def by_vmap(problem: Problem) -> Step:
    model = problem.model

    def loss_of(parameters: dict[str, Tensor], row: Tensor, label: Tensor) -> Tensor:
        outputs = functional_call(model, parameters, (row.unsqueeze(0),))
        return functional.cross_entropy(outputs, label.unsqueeze(0))

    per_sample = vmap(grad(loss_of), in_dims=(None, 0, 0))

    def step(inputs: Tensor, labels: Tensor, ids: Tensor) -> None:
        comparison = comparison_gradient(problem, model, len(labels))
        parameters = {name: p.detach() for name, p in model.named_parameters()}
        own = per_sample(parameters, inputs, labels)
        learn_kept(problem, list(own.values()), comparison)

    return step


def by_opacus(problem: Problem) -> Step:
    from opacus import GradSampleModule

    wrapped = GradSampleModule(problem.model, loss_reduction="mean")
    parameters = list(problem.model.parameters())

    def step(inputs: Tensor, labels: Tensor, ids: Tensor) -> None:
        wrapped.disable_hooks()
        comparison = comparison_gradient(problem, wrapped, len(labels))
        wrapped.enable_hooks()
        problem.optimizer.zero_grad()
        functional.cross_entropy(wrapped(inputs), labels).backward()
        learn_kept(problem, [p.grad_sample for p in parameters], comparison)
        for parameter in parameters:
            parameter.grad_sample = None

    return step


def comparison_gradient(problem: Problem, model: nn.Module, size: int) -> tuple[Tensor, ...]:
    rows = torch.randint(ROWS, (size,))
    loss = functional.cross_entropy(model(problem.inputs[rows]), problem.labels[rows])
    return torch.autograd.grad(loss, list(problem.model.parameters()))


def learn_kept(problem: Problem, own: list[Tensor], comparison: tuple[Tensor, ...]) -> None:
    rows = [part.flatten(1) for part in own]
    dots = sum(part @ g.flatten() for part, g in zip(rows, comparison, strict=True))
    norms = torch.stack([torch.linalg.vector_norm(part, dim=1) for part in rows]).norm(dim=0)
    kept = dots / (norms * torch.nn.utils.get_total_norm(comparison)) > 0
    if not bool(kept.any()):
        return
    shares = kept.float() / kept.sum()
    problem.optimizer.zero_grad()
    for parameter, part in zip(problem.model.parameters(), rows, strict=True):
        parameter.grad = (shares @ part).view_as(parameter)
    problem.optimizer.step()

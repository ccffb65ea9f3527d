"""Forward derivatives that torch lacks, or spells out where a fused kernel would do.

While `FusedTangents` is active, attention, linear and normalising layers run their usual kernels
and give the update its usual graph. Only their tangents are written out here; they keep no graph.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

_Parts = list[Any]  # tensors; None for what a layer does not have, or what does not move

_KERNELS = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.MATH,
]


class FusedTangents(TorchFunctionMode):
    """While active, the functions in `RULES` have another forward derivative than torch's."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Every call of a torch function passes here."""
        rule = RULES.get(func)
        # autocast changes types between parts and outputs: left to torch
        if rule is None or torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            rule = func
        return rule(*args, **(kwargs or {}))


class _Function(torch.autograd.Function):
    """A function of tensors, with its usual backward derivative and another forward one."""

    @staticmethod
    def forward(ctx: Any, function: Any, tangent: Any, *parts: Tensor | None) -> Tensor:
        ctx.set_materialize_grads(False)  # zeros for what does not move would cost a product
        ctx.tangent = tangent
        learns = ctx.needs_input_grad[2:]
        ctx.leaves = [
            part if part is None else part.detach().requires_grad_(yes)
            for part, yes in zip(parts, learns, strict=True)
        ]
        with torch.set_grad_enabled(any(learns)):
            outputs = function(*ctx.leaves)
        if outputs.requires_grad:
            ctx.edge = get_gradient_edge(outputs)  # the numbers themselves need not be kept
        return outputs.detach()

    @staticmethod
    def backward(ctx: Any, output_gradient: Tensor) -> Any:
        learns = [part is not None and part.requires_grad for part in ctx.leaves]
        leaves = [part for part, yes in zip(ctx.leaves, learns, strict=True) if yes]
        found = iter(torch.autograd.grad(ctx.edge, leaves, output_gradient, retain_graph=True))
        return None, None, *(next(found) if yes else None for yes in learns)

    @staticmethod
    @torch.no_grad()
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        # parts saved by torch's own means would keep their tangents as long as the graph
        return ctx.tangent(ctx.leaves, [t if t is None else t.detach() for t in tangents[2:]])


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if x.layout != torch.strided:
        return functional.linear(x, weight, bias)

    def tangent(parts: _Parts, moves: _Parts) -> Tensor:
        (x, weight, _), (dx, dw, db) = parts, moves
        rows = math.prod(x.shape[:-1])
        out = x.new_zeros(rows, len(weight)) if db is None else db.repeat(rows, 1)
        for left, right in ((x, dw), (dx, weight)):
            if left is not None and right is not None:
                out.addmm_(left.reshape(rows, x.shape[-1]), right.T)
        return out.view(*x.shape[:-1], len(weight))

    return _Function.apply(functional.linear, tangent, x, weight, bias)


def _layer_norm(
    x: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    def function(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        return functional.layer_norm(x, normalized_shape, weight, bias, eps)

    def tangent(parts: _Parts, moves: _Parts) -> Tensor:
        (x, weight, _), (dx, dw, db) = parts, moves
        scale = _zeros_for(dw, weight)
        out, mean, rstd = torch.native_layer_norm(x, normalized_shape, scale, db, eps)
        if weight is None:
            out = torch.zeros_like(x)
        if dx is None:
            return out
        # the Jacobian of normalising is symmetric: tangents move as gradients do
        moved, *_ = torch.ops.aten.native_layer_norm_backward(
            dx, x, normalized_shape, mean, rstd, None, None, [True, False, False]
        )
        return moved if weight is None else out.addcmul_(moved, weight)

    return _Function.apply(function, tangent, x, weight, bias)


def _group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    def function(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        return functional.group_norm(x, num_groups, weight, bias, eps)

    def tangent(parts: _Parts, moves: _Parts) -> Tensor:
        (x, weight, _), (dx, dw, db) = parts, moves
        x = x.contiguous()
        sizes = x.shape[0], x.shape[1], math.prod(x.shape[2:])
        scale = _zeros_for(dw, weight)
        out, mean, rstd = torch.native_group_norm(x, scale, db, *sizes, num_groups, eps)
        if weight is None:
            out = torch.zeros_like(x)
        if dx is None:
            return out
        moved, *_ = torch.ops.aten.native_group_norm_backward(
            dx.contiguous(), x, mean, rstd, None, *sizes, num_groups, [True, False, False]
        )
        if weight is None:
            return moved
        return out.addcmul_(moved, weight.view(-1, *[1] * (x.ndim - 2)))

    return _Function.apply(function, tangent, x, weight, bias)


def _attention(  # noqa: PLR0913  # torch's own signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    attend = functional.scaled_dot_product_attention
    if dropout_p or enable_gqa or (attn_mask is not None and attn_mask.requires_grad):
        return attend(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(_KERNELS):
            return attend(q, k, v, attn_mask, is_causal=is_causal, scale=scale)

    def tangent(parts: _Parts, moves: _Parts) -> Tensor:
        q, k, v = parts
        dq, dk, dv = (_zeros_for(move, part) for move, part in zip(moves, parts, strict=True))
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        weights = _attention_weights(factor * (q @ k.mT), attn_mask, is_causal)
        moved = factor * (dq @ k.mT + q @ dk.mT)
        change = weights * (moved - (weights * moved).sum(dim=-1, keepdim=True))
        return change @ v + weights @ dv

    return _Function.apply(function, tangent, query, key, value)


def _attention_weights(logits: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    if causal:
        mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
    if mask is None:
        return logits.softmax(dim=-1)
    boolean = mask.dtype == torch.bool
    logits = logits.masked_fill(~mask, -torch.inf) if boolean else logits + mask
    return logits.softmax(dim=-1).nan_to_num(nan=0.0)  # a row that may look nowhere gets zeros


def _zeros_for(move: Tensor | None, part: Tensor | None) -> Any:
    return torch.zeros_like(part) if move is None and part is not None else move


RULES: Mapping[Any, Callable[..., Tensor]] = MappingProxyType(
    {
        functional.linear: _linear,
        functional.layer_norm: _layer_norm,
        functional.group_norm: _group_norm,
        functional.scaled_dot_product_attention: _attention,
    }
)

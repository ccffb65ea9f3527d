"""Tangents written out here equal torch's own, and leave values and the update's graph alone."""

import itertools

import pytest
import torch
from torch.autograd import forward_ad
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from agra.gradients.tangents import RULES, FusedTangents


def parts_of(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]


def attend(**options):
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, **options)


ALLOWED = torch.rand(4, 5, generator=torch.Generator().manual_seed(1)) > 0.4
ALLOWED[2] = False  # one that may look nowhere
QKV = (2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 6)
CASES = {
    "linear": (functional.linear, parts_of((4, 5), (3, 5), (3,))),
    "linear-sequence": (functional.linear, parts_of((2, 4, 5), (3, 5), (3,))),
    "linear-one-row": (functional.linear, parts_of((5,), (3, 5))),
    "linear-none": (functional.linear, parts_of((0, 5), (3, 5), (3,))),
    "layer-norm": (
        lambda x, w, b: functional.layer_norm(x, (5, 6), w, b, 1e-3),
        parts_of((3, 4, 5, 6), (5, 6), (5, 6)),
    ),
    "layer-norm-bare": (lambda x: functional.layer_norm(x, (6,)), parts_of((3, 6))),
    "layer-norm-weight": (lambda x, w: functional.layer_norm(x, (6,), w), parts_of((3, 6), (6,))),
    "group-norm": (
        lambda x, w, b: functional.group_norm(x, 2, w, b, 1e-3),
        parts_of((3, 4, 5, 2), (4,), (4,)),
    ),
    "group-norm-bare": (lambda x: functional.group_norm(x, 2), parts_of((3, 4, 5))),
    "group-norm-weight": (
        lambda x, w: functional.group_norm(x, 2, weight=w),
        parts_of((3, 4), (4,)),
    ),
    "group-norm-strided": (
        lambda x, w, b: functional.group_norm(x.transpose(1, 2), 2, w, b),
        parts_of((3, 5, 4), (4,), (4,)),
    ),
    "attention": (attend(), parts_of(*QKV)),
    "attention-scale": (attend(scale=0.3), parts_of(*QKV)),
    "attention-causal": (attend(is_causal=True), parts_of(*QKV)),
    "attention-mask": (attend(attn_mask=ALLOWED), parts_of(*QKV)),
    "attention-bias": (
        attend(attn_mask=torch.linspace(-3, 3, 20).view(4, 5).double()),
        parts_of(*QKV),
    ),
    "attention-one-head": (attend(), parts_of((2, 4, 6), (2, 5, 6), (2, 5, 6))),
    "attention-groups": (
        attend(enable_gqa=True),
        parts_of((2, 4, 5, 6), (2, 2, 5, 6), (2, 2, 5, 6)),
    ),
}


def push(function, parts, moves):
    """Outputs and tangents; a None does not move."""
    with forward_ad.dual_level():
        duals = [
            part if move is None else forward_ad.make_dual(part, move)
            for part, move in zip(parts, moves, strict=True)
        ]
        return forward_ad.unpack_dual(function(*duals))


@pytest.mark.parametrize("name", CASES)
def test_tangents_values_and_gradients_are_torchs_own(name):
    function, parts = CASES[name]
    generator = torch.Generator().manual_seed(2)
    for moving in itertools.product([True, False], repeat=len(parts)):
        if not any(moving):
            continue
        moves = [
            torch.randn(part.shape, generator=generator, dtype=part.dtype) if yes else None
            for part, yes in zip(parts, moving, strict=True)
        ]
        with sdpa_kernel(SDPBackend.MATH):
            expected = push(function, parts, moves)
            with FusedTangents():
                found = push(function, parts, moves)
        torch.testing.assert_close(found.primal, expected.primal, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(found.tangent.detach(), expected.tangent.detach())
        back = torch.randn(found.primal.shape, generator=generator, dtype=torch.float64)
        for _ in range(2):  # twice, as backward(retain_graph=True) allows
            torch.testing.assert_close(
                torch.autograd.grad(found.primal, parts, back, retain_graph=True),
                torch.autograd.grad(expected.primal, parts, back, retain_graph=True),
            )


def test_a_frozen_part_gets_no_gradient():
    x, weight, bias = parts_of((4, 5), (3, 5), (3,))
    with FusedTangents():
        outputs = push(functional.linear, [x.detach(), weight, bias.detach()], [None, x[:3], None])
    outputs.primal.sum().backward()
    torch.testing.assert_close(weight.grad, x.detach().sum(dim=0).expand(3, -1))
    assert x.grad is bias.grad is None


def test_autocast_is_left_to_torch(monkeypatch):
    def refuse(*_):
        raise AssertionError

    x, weight = parts_of((4, 5), (3, 5))
    for function in RULES:
        monkeypatch.setattr("agra.gradients.tangents.RULES", {function: refuse})
        with FusedTangents(), torch.autocast("cpu", torch.bfloat16):
            assert functional.linear(x.float(), weight.float()).dtype == torch.bfloat16

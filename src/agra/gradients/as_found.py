"""Judging leaves the model as found: what that takes, and what an update may use of it."""

import inspect
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType

import torch
from torch import Tensor, nn


@contextmanager
def judging(model: nn.Module) -> Iterator[None]:
    """Judge in eval mode; on leaving, modes, buffers and the random state are as they were."""
    modules = list(model.modules())
    switched = [m for m in modules if m.training] if any(map(_follows_mode, modules)) else []
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    with (
        torch.random.fork_rng(devices=list(devices)),
        _buffers_restored(modules),
        _backward_hooks_silent(modules),
    ):
        try:
            for module in switched:
                module.training = False
            yield
        finally:
            for module in switched:
                module.training = True


@contextmanager
def _buffers_restored(modules: list[nn.Module]) -> Iterator[None]:
    """Some modules move their buffers in eval mode too."""
    before = [
        (module, name, buffer, buffer_version(buffer), buffer.clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for module, name, buffer, version, copy in before:
            replaced = module._buffers[name] is not buffer
            if replaced or buffer_version(buffer) != version:
                module._buffers[name] = buffer
                with torch.no_grad():
                    buffer.copy_(copy)  # the version tells `Step.update` that it moved


def buffer_version(buffer: Tensor) -> int:
    """How often a buffer was written to."""
    return -1 if buffer.is_inference() else buffer._version


@contextmanager
def _backward_hooks_silent(modules: list[nn.Module]) -> Iterator[None]:
    """The caller's backward hooks are for the update's backward pass, and fire there alone."""
    hooked = [module for module in modules if _has_backward_hooks(module)]
    before = [(module._backward_hooks, module._backward_pre_hooks) for module in hooked]
    try:
        for module in hooked:
            module._backward_hooks, module._backward_pre_hooks = OrderedDict(), OrderedDict()
        yield
    finally:
        for module, (hooks, pre_hooks) in zip(hooked, before, strict=True):
            module._backward_hooks, module._backward_pre_hooks = hooks, pre_hooks


def _has_backward_hooks(module: nn.Module) -> bool:
    return bool(module._backward_hooks or module._backward_pre_hooks)


def may_share_forward(model: nn.Module) -> bool:
    """Whether the forward pass of the judging is as good as the update's own."""
    return not any(_follows_mode(part) or _has_backward_hooks(part) for part in model.modules())


def depends_on_mode(model: nn.Module) -> bool:
    """Whether a forward pass in train mode may differ from one in eval mode."""
    return any(map(_follows_mode, model.modules()))


def _follows_mode(module: nn.Module) -> bool:
    return module.training and _reads_mode(module)


def _reads_mode(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    if isinstance(module, nn.modules.batchnorm._NormBase):
        return module.track_running_stats or isinstance(module, nn.modules.batchnorm._BatchNorm)
    if type(module) in (nn.RNN, nn.LSTM, nn.GRU, nn.MultiheadAttention):
        return float(module.dropout) > 0  # type: ignore[arg-type]  # a number in all four
    if type(module) in (nn.TransformerEncoderLayer, nn.TransformerEncoder):
        return False  # they only pick a kernel by it; their parts speak for themselves
    return _code_reads_mode(type(module))  # type: ignore[arg-type]  # a class is hashable


@cache
def _code_reads_mode(kind: type[nn.Module]) -> bool:
    own = kind.__mro__[: kind.__mro__.index(nn.Module)]
    # decorated methods keep their own code behind the decorator's
    functions = (inspect.unwrap(f) for parent in own for f in vars(parent).values())
    return any(_mentions(code) for f in functions if (code := getattr(f, "__code__", None)))


def _mentions(code: CodeType) -> bool:
    nested = (part for part in code.co_consts if isinstance(part, CodeType))
    return "training" in code.co_names or any(_mentions(part) for part in nested)

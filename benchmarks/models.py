"""The models whose steps are measured: no dropout, no batch norm, only layers every method knows.

Each comes with the inputs of its training set. The CNN pools by averages: torch's maximum on CPU
costs as much as all convolutions of a forward pass and next to nothing backward, so that a forward
pass would be half of a plain step, not a third, and the bounds of step_cost.py would not apply.
"""

import copy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES, ROWS = 10, 2048
TOKENS, LENGTH, WIDTH = 1000, 32, 128


class Block(nn.Module):
    """A transformer layer whose weights all sit in plain layers, which every method can see."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Attention, then the feed-forward part, each around a shortcut."""
        query, key, value = self.qkv(self.norm_1(x)).unflatten(2, (3, self.heads, -1)).unbind(2)
        mixed = functional.scaled_dot_product_attention(
            query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        )
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Transformer(nn.Module):
    """A classifier of token sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block(WIDTH) for _ in range(4)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Class scores from the mean over places."""
        places = torch.arange(LENGTH).expand_as(tokens)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(places))).mean(1))


def make_mlp() -> tuple[nn.Module, Tensor]:
    layers = nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()
    return nn.Sequential(*layers, nn.Linear(1024, CLASSES)), torch.randn(ROWS, 784)


def make_cnn(*, norm: bool = False) -> tuple[nn.Module, Tensor]:
    def stage(channels: int, width: int) -> list[nn.Module]:
        conv = nn.Conv2d(channels, width, 3, padding=1)
        return [conv, *([nn.GroupNorm(8, width)] if norm else []), nn.ReLU(), nn.AvgPool2d(2)]

    stages = [*stage(3, 32), *stage(32, 64), *stage(64, 64)]
    head = nn.Flatten(), nn.Linear(64 * 4 * 4, CLASSES)
    return nn.Sequential(*stages, *head), torch.randn(ROWS, 3, 32, 32)


def make_transformer() -> tuple[nn.Module, Tensor]:
    return Transformer(), torch.randint(TOKENS, (ROWS, LENGTH))


MODELS = {
    "mlp": make_mlp,
    "cnn": make_cnn,
    "cnn-norm": partial(make_cnn, norm=True),
    "transformer": make_transformer,
}


@dataclass(frozen=True)
class Problem:
    """A copy of the model for one method, and what it learns from."""

    model: nn.Module
    inputs: Tensor
    labels: Tensor
    optimizer: torch.optim.Optimizer

    @classmethod
    def of(cls, model: nn.Module, inputs: Tensor, labels: Tensor) -> "Problem":
        """A fresh copy of the model with an optimizer of its own."""
        own = copy.deepcopy(model)
        optimizer = torch.optim.SGD(own.parameters(), lr=1e-3, momentum=0.9)
        return cls(own, inputs, labels, optimizer)

"""The linear model: softmax or sigmoid regression on dense or sparse rows."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from agra.rows import Rows


class LinearModel(nn.Module):
    """One linear layer on `Rows`, starting from zero.

    Attributes:
        weight: (D, K), one row per feature: this way round sparse products read it in order.
        bias: (K,).
    """

    def __init__(self, num_features: int, num_outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(num_features, num_outputs))
        self.bias = nn.Parameter(torch.zeros(num_outputs))

    def forward(self, rows: Rows) -> Tensor:
        """The outputs (N, K), without a graph."""
        return rows.times(self.weight.detach()).add_(self.bias.detach())


class LinearData(NamedTuple):
    """What a linear model learns from.

    Attributes:
        rows: The features.
        labels: Class indices (N,), ``IGNORE_LABEL`` for none; or, for several labels per sample, a
            0/1 matrix (N, K), NaN where unknown.
        weights: (N,), what each sample weighs in all losses; None for the same.
        mask: (N, K), the classes that each sample may be relabelled to; None for all.
    """

    rows: Rows
    labels: Tensor
    weights: Tensor | None = None
    mask: Tensor | None = None

    def take(self, rows: Tensor) -> "LinearData":
        """A batch."""
        others = (part if part is None else part[rows] for part in (self.weights, self.mask))
        return LinearData(self.rows.take(rows), self.labels[rows], *others)

    def split(self, count: int) -> "tuple[LinearData, LinearData]":
        """The first samples of a batch, and the rest."""
        parts = self.labels, self.weights, self.mask
        cut = [(None, None) if p is None else (p[:count], p[count:]) for p in parts]
        first, rest = zip(self.rows.split(count), *cut, strict=True)
        return LinearData(*first), LinearData(*rest)

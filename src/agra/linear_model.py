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
        weights, mask = self.weights, self.mask
        return LinearData(
            self.rows.take(rows),
            self.labels[rows],
            None if weights is None else weights[rows],
            None if mask is None else mask[rows],
        )

    def split(self, count: int) -> "tuple[LinearData, LinearData]":
        """The first samples of a batch, and the rest."""
        rows, others = self.rows.split(count), (slice(count), slice(count, None))
        labels, weights, mask = self.labels, self.weights, self.mask
        first, rest = (
            LinearData(
                own,
                labels[part],
                None if weights is None else weights[part],
                None if mask is None else mask[part],
            )
            for own, part in zip(rows, others, strict=True)
        )
        return first, rest

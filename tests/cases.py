"""The matrix of models on which every engine is held against the reference."""

from dataclasses import dataclass, field

import torch
from scipy import sparse
from torch import nn
from torch.nn import functional

from agra.inputs import as_inputs


class Lambda(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class BagOfWords(nn.Module):
    """The mean of word vectors; word 0 is padding."""

    def __init__(self, num_classes):
        super().__init__()
        self.words = nn.Embedding(11, 5, padding_idx=0)
        self.head = nn.Linear(5, num_classes)

    def forward(self, ids):
        return self.head(self.words(ids).mean(dim=1))


class Block(nn.Module):
    """A transformer block with its attention written out of plain layers."""

    def __init__(self, num_classes, width=8, heads=2):
        super().__init__()
        self.words, self.heads = nn.Embedding(11, width), heads
        self.norm, self.project = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.head = nn.Linear(width, width), nn.Linear(width, num_classes)

    def forward(self, ids):
        x = self.words(ids)
        parts = self.project(self.norm(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(*parts)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return self.head(functional.gelu(x).mean(dim=1))


class TorchEncoder(nn.Module):
    """PyTorch's own encoder layer, whose weights live outside of plain layers."""

    def __init__(self, num_classes):
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, num_classes)

    def forward(self, ids):
        return self.head(self.layer(self.words(ids)).mean(dim=1))


class Recurrent(nn.Module):
    """The last state of a recurrent layer."""

    def __init__(self, kind, num_classes):
        super().__init__()
        self.layer = kind(4, 6, batch_first=True)
        self.head = nn.Linear(6, num_classes)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Tied(nn.Module):
    """One weight in three places: looked up, applied to a sequence, and applied again."""

    def __init__(self, num_classes):
        super().__init__()
        self.words = nn.Embedding(6, 6)
        self.again = nn.Linear(6, 6, bias=False)
        self.again.weight = self.words.weight
        self.head = nn.Linear(6, num_classes)

    def forward(self, ids):
        x = self.again(torch.tanh(self.words(ids)))
        return self.head(self.again(torch.tanh(x)).sum(dim=1))


class UsedOutside(nn.Module):
    """A layer's weight used without the layer: hooks do not see it."""

    def __init__(self, num_classes):
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, num_classes)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(x)) @ self.layer.weight)


class TwoInputs(nn.Module):
    """Two inputs by name."""

    def __init__(self, num_classes):
        super().__init__()
        self.left, self.right = nn.Linear(3, 5), nn.Linear(4, 5)
        self.head = nn.Linear(5, num_classes)

    def forward(self, left, right):
        return self.head(torch.tanh(self.left(left) * self.right(right)))


def cnn_batch_norm(k):
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, k),
    )


def cnn_group_norm(k):
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1, padding_mode="reflect"),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.Conv2d(4, 6, (3, 2), groups=2, dilation=2, padding="same", bias=False),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(96, k),
    )


def cnn_1d(k):
    return nn.Sequential(
        nn.Conv1d(3, 4, 3, padding=1), nn.GELU(), nn.Conv1d(4, 2, 2), nn.Flatten(), nn.Linear(12, k)
    )


def frozen_trunk(k):
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, k))
    model[0].requires_grad_(False)
    model[2].bias.requires_grad_(False)
    return model


def words(n, generator, vocabulary=11, length=5):
    return torch.randint(0, vocabulary, (n, length), generator=generator)


def numbers(*shape):
    return lambda n, generator: torch.randn((n, *shape), generator=generator, dtype=torch.float64)


def csr(n, generator):
    rows = numbers(7)(n, generator) * (numbers(7)(n, generator) > 0)
    return as_inputs(sparse.csr_matrix(rows.numpy()))


ONE_DIRECTION = frozenset({"forward", "perturbed"})
ALL = frozenset({"linear", "forward", "perturbed", "ghost", "per-sample"})


@dataclass(frozen=True)
class Case:
    """A model, inputs for it, and the engines that serve it."""

    name: str
    make: object
    inputs: object
    engines: frozenset = field(default=ALL - {"linear"})
    parameters: object = None

    def model(self, num_classes, dtype=torch.float64):
        torch.manual_seed(0)
        return self.make(num_classes).to(dtype)

    def __str__(self):
        return self.name


CASES = [
    Case("linear", lambda k: nn.Linear(7, k), numbers(7), ALL),
    Case("linear-bias", lambda k: nn.Linear(7, k), numbers(7), ALL, "*"),
    Case("linear-only-bias", lambda k: nn.Linear(7, k), numbers(7), ALL, "bias"),
    Case("linear-csr", lambda k: nn.Linear(7, k), csr, frozenset({"linear", "perturbed"})),
    Case(
        "flat-linear",
        lambda k: nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(6, k)),
        numbers(2, 3),
        ALL,
    ),
    Case(
        "mlp",
        lambda k: nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, k)),
        numbers(5),
    ),
    Case("mlp-head", frozen_trunk, numbers(5), parameters="4.*"),
    Case("mlp-no-bias", frozen_trunk, numbers(5), parameters="!*.bias"),
    Case("frozen", frozen_trunk, numbers(5)),
    Case("cnn-batch-norm", cnn_batch_norm, numbers(2, 6, 6), ALL - {"linear", "ghost"}),
    Case("cnn-batch-norm-convs", cnn_batch_norm, numbers(2, 6, 6), parameters="[06].*"),
    Case("cnn-group-norm", cnn_group_norm, numbers(2, 8, 8)),
    Case("cnn-1d", cnn_1d, numbers(3, 7)),
    Case("bag-of-words", BagOfWords, words),
    Case(
        "embedding-bag",
        lambda k: nn.Sequential(nn.EmbeddingBag(11, 5), nn.Linear(5, k)),
        words,
        frozenset({"perturbed"}),
    ),
    Case("transformer-block", Block, words),
    Case("torch-encoder", TorchEncoder, words, ALL - {"linear", "ghost"}),
    Case("gru", lambda k: Recurrent(nn.GRU, k), numbers(3, 4), ONE_DIRECTION),
    Case(
        "lstm", lambda k: Recurrent(nn.LSTM, k), numbers(3, 4), frozenset({"forward", "perturbed"})
    ),
    Case("tied", Tied, lambda n, g: words(n, g, vocabulary=6)),
    Case("used-outside", UsedOutside, numbers(6), ALL - {"linear", "ghost"}),
    Case(
        "two-inputs",
        TwoInputs,
        lambda n, g: {"left": numbers(3)(n, g), "right": numbers(4)(n, g)},
    ),
]

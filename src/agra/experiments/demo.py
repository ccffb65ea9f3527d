"""The demo: handwritten digits with wrong labels, trained with and without judging."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import Literal

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from agra.data.noise import symmetric_noise
from agra.judge import Agra
from agra.learner import ModuleLearner
from agra.loop import Loop, Progress

Method = Literal["true labels", "given labels", "AGRA"]
METHODS: tuple[Method, ...] = ("true labels", "given labels", "AGRA")

NUM_CLASSES = 10


@dataclass(frozen=True)
class Demo:
    """What the demo runs.

    Attributes:
        seed: Of the first run; the others count on from it.
        runs: How many seeds.
        noise: The share of wrong labels.
        epochs: Per run.
        batch_size: Samples per update.
        comparison_size: Samples per comparison batch.
        learning_rate: Of Adam.
        hidden: Width of the network's hidden layer.
    """

    seed: int = 0
    runs: int = 5
    noise: float = 0.3
    epochs: int = 25
    batch_size: int = 64
    comparison_size: int = 512
    learning_rate: float = 0.01
    hidden: int = 128

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ValueError(f"Expected `runs` to be at least 1, got {self.runs}.")
        if not 0 <= self.noise <= 1:
            raise ValueError(f"Expected `noise` to be in [0, 1], got {self.noise}.")


@dataclass(frozen=True)
class Run:
    """One run of one method.

    Attributes:
        method: Which labels it learned from, and how.
        seed: Of the split, the noise, the weights and the order.
        accuracy: On the test split's true labels.
        wrong_dropped: The share of judgements on wrong labels that dropped them; None if unjudged.
        right_dropped: The same of right labels.
        seconds: Of training.
    """

    method: Method
    seed: int
    accuracy: float
    wrong_dropped: float | None
    right_dropped: float | None
    seconds: float


@dataclass(frozen=True)
class Summary:
    """A method over all seeds: means, and the standard deviation of the accuracy."""

    method: Method
    accuracy: float
    deviation: float
    wrong_dropped: float | None
    right_dropped: float | None
    seconds: float


def run_demo(demo: Demo, progress: Callable[[Progress], None] | None = None) -> Iterator[Run]:
    """Every method on every seed, one after the other as they finish."""
    for seed in range(demo.seed, demo.seed + demo.runs):
        for method in METHODS:
            yield _run(demo, method, seed, progress)


def summarise(runs: list[Run]) -> list[Summary]:
    """One row per method, in the order of `METHODS`.

    Example:
        >>> rows = [Run("AGRA", s, a, 0.6, 0.2, 1.0) for s, a in ((0, 0.9), (1, 1.0))]
        >>> round(summarise(rows)[0].accuracy, 2)
        0.95
    """
    rows = []
    for method in METHODS:
        own = [run for run in runs if run.method == method]
        if own:
            accuracies = [run.accuracy for run in own]
            rows.append(
                Summary(
                    method,
                    fmean(accuracies),
                    pstdev(accuracies),
                    _mean([run.wrong_dropped for run in own]),
                    _mean([run.right_dropped for run in own]),
                    fmean(run.seconds for run in own),
                )
            )
    return rows


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _run(demo: Demo, method: Method, seed: int, progress: Callable[[Progress], None] | None) -> Run:
    train, test, true_labels, test_labels = _split(seed)
    noise = symmetric_noise(true_labels, demo.noise, NUM_CLASSES, seed=seed)
    labels = torch.as_tensor(noise.labels)
    wrong = labels != true_labels
    if method == "true labels":
        labels = true_labels
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = nn.Sequential(
            nn.Linear(train.shape[1], demo.hidden), nn.ReLU(), nn.Linear(demo.hidden, NUM_CLASSES)
        )
    optimizer = torch.optim.Adam(model.parameters(), lr=demo.learning_rate)
    judge = None
    if method == "AGRA":
        size = demo.comparison_size
        judge = Agra(model, (train, labels), criterion="f1", comparison_size=size, seed=seed)
    loop = Loop(
        ModuleLearner(model, (train, labels), optimizer, judge=judge),
        epochs=demo.epochs,
        batch_size=demo.batch_size,
        progress=progress,
        seed=seed,
    )
    started = time.perf_counter()
    loop.run()
    seconds = time.perf_counter() - started
    with torch.no_grad():
        accuracy = float((model(test).argmax(dim=1) == test_labels).float().mean())
    result = Run(method, seed, accuracy, None, None, seconds)
    if judge is None or judge.ledger is None:
        return result
    totals = judge.ledger.totals
    return replace(
        result,
        wrong_dropped=_share(totals["dropped"], totals["judged"], wrong),
        right_dropped=_share(totals["dropped"], totals["judged"], ~wrong),
    )


def _share(part: Tensor, whole: Tensor, rows: Tensor) -> float | None:
    return float(part[rows].sum() / whole[rows].sum()) if bool(rows.any()) else None


def _split(seed: int) -> tuple[Tensor, ...]:
    digits = load_digits()
    parts = train_test_split(
        digits.data.astype("float32") / 16,
        digits.target,
        test_size=0.3,
        random_state=seed,
        stratify=digits.target,
    )
    return tuple(torch.as_tensor(part) for part in parts)

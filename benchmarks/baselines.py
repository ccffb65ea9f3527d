"""The paper's methods on its text sets: what they make of the labels, and of a test set.

    AGRA_DATA_HOME=... python benchmarks/baselines.py [--markdown]

One linear layer on TF-IDF rows, 10 epochs. **Labels**: the accuracy of what a method learns from,
on training rows with a vote; of probabilities, the most probable class. **Test**:
mean and standard deviation over five runs of the set's metric, in percent, with the settings that
did best on the true validation labels (learning rate 1e-3, 1e-2, 1e-1; batch 32 and 128; weight
decay 1e-4 and 1e-3; for AGRA also criterion and sampling), as has the epoch. The paper's search is
finer (Table 6) and repeats every point. A star marks what differs from the paper by more than two
standard deviations of the difference. **Seconds**: of one fit, label model included, the median.
"""

import itertools
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

import click
import numpy as np
import real_data
import results
import torch
from threadpoolctl import threadpool_limits

from agra import load_dataset
from agra.baselines import METHODS, Method
from agra.encode import TfIdf, encode
from agra.label_models import most_probable
from text_sets import TEXT_SETS, TextSet

GRID = {"learning_rate": (1e-3, 1e-2, 1e-1), "batch_size": (32, 128), "weight_decay": (1e-4, 1e-3)}
JUDGING = {"criterion": ("cross-entropy", "f1"), "weights": ("uniform", "inverse-frequency")}
# Table 2: YouTube, SMS, TREC, Yorùbá, Hausa
PAPER = {
    "gold": "94.8±0.8 95.4±1.0 89.5±0.3 57.3±0.4 78.5±0.3",
    "no-denoising": "87.4±2.7 71.7±1.4 58.7±0.5 44.6±0.4 39.7±0.8",
    "data-programming": "90.8±1.0 44.1±6.7 54.3±0.5 47.8±1.7 40.9±0.6",
    "metal": "92.0±0.8 18.3±7.8 50.4±1.7 38.9±3.1 45.5±1.1",
    "flying-squid": "84.8±1.2 16.3±6.0 27.2±0.1 31.9±0.7 37.6±1.0",
    "cores2": "88.8±3.6 85.8±1.8 61.8±0.5 43.0±0.7 51.2±0.5",
    "cleanlab": "91.3±1.2 80.6±0.3 60.9±0.4 43.8±1.3 40.3±0.3",
    "agra": "93.9±0.7 87.7±1.2 63.6±0.7 46.9±1.5 46.2±1.6",
}


@dataclass(frozen=True)
class Row:
    """One method on one set."""

    data: str
    method: str
    labels: float
    mean: float
    deviation: float
    settings: dict[str, Any]
    seconds: float

    @property
    def paper(self) -> tuple[float, float] | None:
        """Mean and standard deviation there."""
        if self.method not in PAPER:
            return None
        place = [text_set.name for text_set in TEXT_SETS].index(self.data)
        mean, deviation = PAPER[self.method].split()[place].split("±")
        return float(mean), float(deviation)

    @property
    def differs(self) -> bool:
        """By more than two standard deviations of the difference."""
        paper = self.paper
        limit = 0.0 if paper is None else 2 * math.hypot(paper[1], self.deviation)
        return paper is not None and abs(self.mean - paper[0]) > limit


def grid(method: str) -> Iterator[dict[str, Any]]:
    space = GRID | (JUDGING if method == "agra" else {})
    for values in itertools.product(*space.values()):
        yield {**dict(zip(space, values, strict=True)), "epochs": 10}


def measure(text_set: TextSet, splits: dict[str, Any], method: Method, runs: int) -> Row:
    train, valid, test = (splits[name] for name in ("train", "valid", "test"))

    def score(part: Any, settings: dict[str, Any], seed: int) -> float:
        classifier = method.fit(train, valid, {**settings, "scoring": text_set.scoring}, seed)
        return 100 * text_set.score(part.labels, classifier.predict(part.features()))

    best = max(grid(method.name), key=lambda settings: score(valid, settings, 0))
    scores, seconds = [], []
    for seed in range(1, runs + 1):
        start = time.perf_counter()
        scores.append(score(test, best, seed))
        seconds.append(time.perf_counter() - start)
    learned = method.label(train)
    covered = (train.votes >= 0).any(axis=1) & ~(
        np.isnan(learned).any(axis=1) if learned.ndim == 2 else learned < 0
    )
    chosen = most_probable(learned[covered]) if learned.ndim == 2 else learned[covered]
    right = 100 * float((chosen == train.true_labels[covered]).mean())
    return Row(
        text_set.name, method.name, right, fmean(scores), pstdev(scores), best, median(seconds)
    )


def show(rows: list[Row], *, markdown: bool) -> None:
    headers = ["data", "method", "labels", "test", "paper", "s"]
    sections = []
    for name in dict.fromkeys(row.data for row in rows):
        own = [row for row in rows if row.data == name]
        sections.append(
            [
                [
                    real_data.NAMES[name] if row is own[0] else "",
                    METHODS[row.method].title,
                    f"{row.labels:.1f}",
                    f"{row.mean:.1f} ± {row.deviation:.1f}",
                    "-"
                    if row.paper is None
                    else f"{row.paper[0]:.1f}{' *' if row.differs else ''}",
                    f"{row.seconds:.2f}",
                ]
                for row in own
            ]
        )
    results.show(headers, sections, words=2, markdown=markdown)


@click.command(context_settings={"show_default": True})
@click.option("--runs", type=click.IntRange(min=1), default=5)
@click.option("--methods", default=",".join(METHODS), help="Some of these, with commas.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "baselines.json",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(*, runs: int, methods: str, output: Path, markdown: bool) -> None:
    """Train every method on every set, write down how well, and show it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    with threadpool_limits(1):
        for text_set in TEXT_SETS:
            splits = encode(load_dataset(text_set.name), TfIdf())
            for name in methods.split(","):
                rows.append(measure(text_set, splits, METHODS[name], runs))
                click.echo(f"{text_set.name} {name} {rows[-1].mean:.1f}", err=True)
                result: dict[str, Any] = results.environment(("torch", "scikit-learn", "cleanlab"))
                result |= {"runs": runs, "grid": GRID, "rows": [asdict(row) for row in rows]}
                results.write(output, result)  # as they come
    show(rows, markdown=markdown)


if __name__ == "__main__":
    main()

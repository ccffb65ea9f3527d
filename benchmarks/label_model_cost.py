"""What a label model costs: TREC's votes and a million rows, beside snorkel's LabelModel.

    AGRA_DATA_HOME=... python benchmarks/label_model_cost.py [--markdown]

**TREC**: 4,965 rows, 68 functions, 6 classes, all that is there. **Sparse**: 1,000,000 rows, 50
functions that each vote on a tenth of them, right in 55 to 90 % of their votes. Every fit and
prediction has a process of its own, one thread; methods alternate, and medians are shown. Memory is
how far the process grew, without the votes themselves (int8), which are there before.
"""

import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import results
import torch
from processes import alone, begin, memory
from real_data import home
from threadpoolctl import threadpool_limits

from agra import label_models
from agra.data.readers.wrench import read_wrench

OURS = "MajorityVote", "FlyingSquid", "MeTaL", "DataProgramming", "DawidSkene"
PEER = "snorkel"
SPARSE_ROWS, FUNCTIONS, COVERAGE = 1_000_000, 50, 0.1


@dataclass(frozen=True)
class Row:
    """One model on one set of votes: medians."""

    votes: str
    model: str
    fit_seconds: float
    predict_seconds: float
    grown_bytes: int
    accuracy: float


def trec() -> tuple[Any, Any, int]:
    data = read_wrench(home() / "text" / "trec", "train")
    return data.votes.astype(np.int8), data.true_labels, len(data.classes)


def planted() -> tuple[Any, Any, int]:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=SPARSE_ROWS, dtype=np.int8)
    votes = np.full((SPARSE_ROWS, FUNCTIONS), -1, dtype=np.int8)
    for column, accuracy in enumerate(rng.uniform(0.55, 0.9, FUNCTIONS)):
        cast = rng.random(SPARSE_ROWS, dtype=np.float32) < COVERAGE
        right = rng.random(SPARSE_ROWS, dtype=np.float32) < accuracy
        votes[cast, column] = np.where(right, truth, 1 - truth)[cast]
    return votes, truth, 2


VOTES = {"TREC": trec, "1e6 x 50": planted}


def measure(votes_name: str, name: str) -> tuple[float, float, int, float]:
    torch.set_num_threads(1)
    threadpool_limits(1)
    votes, truth, num_classes = VOTES[votes_name]()
    if name == PEER:
        from snorkel.labeling.model import LabelModel

        model = LabelModel(num_classes, verbose=False)
        settings = {"class_balance": [1 / num_classes] * num_classes, "progress_bar": False}
    else:
        model, settings = getattr(label_models, name)(num_classes=num_classes), {}
    before, start = begin(), time.perf_counter()
    model.fit(votes, **settings)
    fitted = time.perf_counter()
    shares = model.predict_proba(votes)
    done = time.perf_counter()
    grown = memory("VmHWM") - before
    covered = (votes >= 0).any(axis=1)
    right = shares[covered].argmax(axis=1) == truth[covered]
    return fitted - start, done - fitted, grown, float(right.mean())


def compare(votes_name: str, rounds: int, order: random.Random) -> list[Row]:
    names = [*OURS, PEER]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            found[name].append(alone(measure, votes_name, name))
    return [
        Row(votes_name, name, *(median(part) for part in zip(*found[name], strict=True)))
        for name in (*OURS, PEER)
    ]


def show(rows: list[Row], *, markdown: bool) -> None:
    headers = ["votes", "model", "fit, s", "predict, s", "MB", "right"]
    sections = []
    for name in dict.fromkeys(row.votes for row in rows):
        own = [row for row in rows if row.votes == name]
        sections.append(
            [
                [
                    name if row is own[0] else "",
                    row.model,
                    f"{row.fit_seconds:.3f}",
                    f"{row.predict_seconds:.3f}",
                    f"{row.grown_bytes / 1e6:.0f}",
                    f"{row.accuracy:.3f}",
                ]
                for row in own
            ]
        )
    results.show(headers, sections, words=2, markdown=markdown)


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=click.IntRange(min=1), default=3)
@click.option("--seed", default=0, help="Of the order of the models.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "label_model_cost.json",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(*, rounds: int, seed: int, output: Path, markdown: bool) -> None:
    """Measure what label models cost, write it down and show it."""
    order = random.Random(seed)
    rows = [row for name in VOTES for row in compare(name, rounds, order)]
    result: dict[str, Any] = results.environment(("numpy", "scipy", "snorkel"))
    result |= {"seed": seed, "rounds": rounds, "rows": [asdict(row) for row in rows]}
    results.write(output, result)
    show(rows, markdown=markdown)


if __name__ == "__main__":
    main()

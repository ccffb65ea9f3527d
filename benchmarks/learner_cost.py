"""What a judged fit costs: beside a plain fit, and beside cleaning with five folds.

    AGRA_DATA_HOME=... python benchmarks/learner_cost.py [--markdown]

The five text sets with the settings of the paper (appendix E), and 50,000 rows of 256 image
features (benchmarks/image_features.py) with the defaults. One thread. Within a repetition every
method runs once, in a random order; ratios are those within a repetition, and of these the median.
CleanLearning trains scikit-learn's logistic regression five times, drops what looks wrong, and
trains once more; C = 1 on text, 0.01 on images, as fits each best.
"""

import random
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import real_data
import results
import torch
from cleanlab.classification import CleanLearning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from agra import AgraClassifier

Fit = Callable[[], object]
JUDGED, PLAIN, PEER = "AGRA", "plain", "CleanLearning"


@dataclass(frozen=True)
class Row:
    """One data set: median seconds of every method, and ratios within a repetition."""

    data: str
    rows: int
    columns: int
    repetitions: int
    seconds: dict[str, float]
    judged_to_plain: float
    peer_to_judged: float


def methods(data: real_data.RealData) -> dict[str, Fit]:
    def ours(*, judging: bool) -> Fit:
        return lambda: AgraClassifier(**data.settings, judging=judging, random_state=0).fit(
            data.features, data.given
        )

    def cleaning() -> object:
        model = LogisticRegression(C=data.peer_c, max_iter=1000)
        return CleanLearning(model, seed=0, find_label_issues_kwargs={"n_jobs": 1}).fit(
            data.features, data.given
        )

    return {JUDGED: ours(judging=True), PLAIN: ours(judging=False), PEER: cleaning}


def measure(data: real_data.RealData, repetitions: int, order: random.Random) -> Row:
    fits = methods(data)
    fits[JUDGED]()  # warm up
    if data.features.shape[0] > 10_000:
        repetitions = max(1, repetitions // 3)
    seconds = results.interleaved(fits, repetitions, order)
    pairs = list(zip(seconds[JUDGED], seconds[PLAIN], seconds[PEER], strict=True))
    return Row(
        data.name,
        *data.features.shape,
        repetitions,
        {name: median(values) for name, values in seconds.items()},
        median(judged / plain for judged, plain, _ in pairs),
        median(peer / judged for judged, _, peer in pairs),
    )


def show(rows: list[Row], *, markdown: bool) -> None:
    headers = ["data", "rows", PLAIN, JUDGED, "ratio", PEER, "times AGRA"]
    lines = [
        [
            row.data,
            f"{row.rows:,}",
            *(f"{1000 * row.seconds[name]:.0f} ms" for name in (PLAIN, JUDGED)),
            f"{row.judged_to_plain:.2f}",
            f"{1000 * row.seconds[PEER]:.0f} ms",
            f"{row.peer_to_judged:.1f}",
        ]
        for row in rows
    ]
    texts = [row for row in rows if row.data not in real_data.IMAGES]
    sums = {name: sum(row.seconds[name] for row in texts) for name in (PLAIN, JUDGED, PEER)}
    total = [
        "all text sets",
        f"{sum(row.rows for row in texts):,}",
        *(f"{1000 * sums[name]:.0f} ms" for name in (PLAIN, JUDGED)),
        f"{sums[JUDGED] / sums[PLAIN]:.2f}",
        f"{1000 * sums[PEER]:.0f} ms",
        f"{sums[PEER] / sums[JUDGED]:.1f}",
    ]
    results.show(headers, [lines, [total]], markdown=markdown)


@click.command(context_settings={"show_default": True})
@click.option("--repetitions", type=click.IntRange(min=1), default=9)
@click.option("--seed", default=0, help="Of the order of the methods.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "learner_cost.json",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(*, repetitions: int, seed: int, output: Path, markdown: bool) -> None:
    """Measure what a judged fit costs, write it down and show it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    order = random.Random(seed)
    with threadpool_limits(1):
        rows = [measure(data, repetitions, order) for data in real_data.classification()]
    result: dict[str, Any] = results.environment(("torch", "scikit-learn", "cleanlab"))
    result |= {"seed": seed, "rows": [asdict(row) for row in rows]}
    results.write(output, result)
    show(rows, markdown=markdown)


if __name__ == "__main__":
    main()

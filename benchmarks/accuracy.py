"""What judging gains on a test set: with the paper's settings, and with the defaults.

    AGRA_DATA_HOME=... python benchmarks/accuracy.py [--markdown]

**Paper**: criterion, sampling, learning rate, batch size and weight decay of its appendix E; the
epoch by the true validation labels. **Defaults**: the estimators as they come, nothing but the
noisy labels, the last epoch; for several labels per sample the four Mulan sets, standardised, with
noise injected per entry (30 % of the positives lost, or 20 % of all entries flipped), macro area
under ROC. **Uncovered unlabelled**: the same, but rows on which no rule voted have no label at all,
instead of one drawn by lot. Mean and standard deviation over the seeds, in percent, on the test
split's true labels.
"""

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import click
import numpy as np
import real_data
import results
import torch
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from agra import AgraClassifier, AgraMultilabelClassifier

PAPER = {"YouTube": 93.9, "SMS": 87.7, "TREC": 63.6, "Yorùbá": 46.9, "Hausa": 46.2}
MULAN = ("yeast", "scene", "emotions", "tmc2007-500")
NOISES = ("positives lost", "flips")
DEFAULTS, UNLABELLED = "defaults", "uncovered unlabelled"


@dataclass(frozen=True)
class Row:
    """One data set and way of training."""

    part: str
    data: str
    method: str
    mean: float
    deviation: float
    paper: float | None


def row(part: str, data: str, method: str, scores: list[float]) -> Row:
    percent = [100 * score for score in scores]
    paper = PAPER.get(data) if part == "paper" else None
    return Row(part, data, method, fmean(percent), pstdev(percent), paper)


def with_paper_settings(data: real_data.RealData, seeds: range) -> Iterator[Row]:
    scores = []
    for seed in seeds:
        model = AgraClassifier(**data.settings, scoring=data.scoring, random_state=seed)
        model.fit(data.features, data.given, validation=data.validation)
        scores.append(data.score(data.test[1], model.predict(data.test[0])))
    yield row("paper", data.name, "AGRA", scores)


def with_defaults(data: real_data.RealData, seeds: range, part: str) -> Iterator[Row]:
    given = data.given.astype(object)
    if part == UNLABELLED:
        given[~data.covered] = None
    for method, settings in {
        "no denoising": {"judging": False},
        "AGRA": {},
        'AGRA, "any"': {"alternative_label": "any"},
    }.items():
        scores = []
        for seed in seeds:
            model = AgraClassifier(**settings, random_state=seed).fit(data.features, given)
            found = model.predict(data.test[0]).astype(np.int64)
            scores.append(data.score(data.test[1], found))
        yield row(part, data.name, method, scores)


def several_labels(name: str, noise: str, seeds: range) -> Iterator[Row]:
    path = real_data.home() / "multilabel" / f"mulan_{name}.npz"
    with np.load(path, allow_pickle=False) as arrays:
        x, y, x_test, y_test = (arrays[k] for k in ("x_train", "y_train", "x_test", "y_test"))
    scaler = StandardScaler().fit(x)
    x, x_test = scaler.transform(x), scaler.transform(x_test)
    known = [k for k in range(y.shape[1]) if 0 < y_test[:, k].sum() < len(y_test)]
    for method, judging in {"no denoising": False, "AGRA": True}.items():
        scores = []
        for seed in seeds:
            draws = np.random.default_rng(seed).random(y.shape)
            given = np.where(draws < 0.3, 0, y) if noise == NOISES[0] else y ^ (draws < 0.2)
            model = AgraMultilabelClassifier(judging=judging, random_state=seed).fit(x, given)
            found = model.predict_proba(x_test)
            scores.append(roc_auc_score(y_test[:, known], found[:, known], average="macro"))
        yield row(DEFAULTS, f"{name}, {noise}", method, scores)


def show(rows: list[Row], *, markdown: bool) -> None:
    paper = [[r.data, r.method, figure(r), f"{r.paper:.1f}"] for r in rows if r.part == "paper"]
    results.show(["paper's settings", "method", "here", "paper"], [paper], 2, markdown=markdown)
    for part in (DEFAULTS, UNLABELLED):
        sections = []
        own = [r for r in rows if r.part == part]
        for name in dict.fromkeys(r.data for r in own):
            lines = [[r.method, figure(r)] for r in own if r.data == name]
            sections.append([[name if n == 0 else "", *line] for n, line in enumerate(lines)])
        sections.append(means(own))
        results.show([part, "method", "test"], sections, 2, markdown=markdown)


def means(rows: list[Row]) -> list[list[str]]:
    """Over the text sets."""
    texts = [r for r in rows if r.data in PAPER]
    methods = dict.fromkeys(r.method for r in texts)
    found = [[m, f"{fmean(r.mean for r in texts if r.method == m):.1f}"] for m in methods]
    return [["mean of the text sets" if n == 0 else "", *line] for n, line in enumerate(found)]


def figure(r: Row) -> str:
    return f"{r.mean:.1f} ± {r.deviation:.1f}"


@click.command(context_settings={"show_default": True})
@click.option("--seeds", type=click.IntRange(min=1), default=5)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "accuracy.json",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(*, seeds: int, output: Path, markdown: bool) -> None:
    """Train, write down how well, and show it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    runs = range(seeds)
    rows: list[Row] = []
    with threadpool_limits(1):
        for data in real_data.classification():
            if data.settings:
                rows += with_paper_settings(data, runs)
            rows += with_defaults(data, runs, DEFAULTS)
            if not data.covered.all():
                rows += with_defaults(data, runs, UNLABELLED)
        for name in MULAN:
            for noise in NOISES:
                rows += several_labels(name, noise, runs)
    result: dict[str, Any] = results.environment(("torch", "scikit-learn"))
    result |= {"seeds": seeds, "rows": [asdict(r) for r in rows]}
    results.write(output, result)
    show(rows, markdown=markdown)


if __name__ == "__main__":
    main()

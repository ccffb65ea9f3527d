"""How well one training run finds wrong labels, beside cleanlab's five folds and a static score.

    AGRA_DATA_HOME=... python benchmarks/label_errors.py [--markdown]

Real label errors: five text sets labelled by the majority vote of rules, and CIFAR-10 with 20 %
noise. Area under ROC and average precision of one minus the quality against the true errors; then
the F1 of the flag itself, which nobody told the noise rate. CPU seconds, one thread. In the same
run, all over several seeds:

* `AgraClassifier()` as it comes, and with ``alternative_label="any"``;
* cleanlab's self-confidence from scikit-learn's logistic regression (C = 1, five folds by
  `cross_val_predict`) and its default filter;
* the static score of Orange's `mislabeled`, which no package index carries, written out here: the
  cosine of every sample's cross-entropy gradient with the mean gradient after training (logistic
  regression, C = 1, 0.01 on images). It flags nothing by itself.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import click
import numpy as np
import real_data
import results
import scipy.sparse.linalg
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from agra import AgraClassifier

Found = tuple[Any, Any]  # quality, and a flag where there is one


@dataclass(frozen=True)
class Row:
    """One data set and method: means over seeds."""

    data: str
    method: str
    wrong: float
    area: float
    area_deviation: float
    precision: float
    f1: float | None
    cpu_seconds: float


def by_agra(data: real_data.RealData, seed: int, **settings: Any) -> Found:
    model = AgraClassifier(random_state=seed, **settings).fit(data.features, data.given)
    return model.label_quality_, model.find_label_issues()["is_label_issue"].to_numpy()


def by_static_score(data: real_data.RealData, seed: int) -> Found:
    x = data.features
    model = LogisticRegression(C=data.peer_c, max_iter=1000, random_state=seed).fit(x, data.given)
    own = model.predict_proba(x) - np.eye(len(model.classes_))[data.given]
    mean = own.T @ x / len(own)
    lengths = np.linalg.norm(own, axis=1) * scipy.sparse.linalg.norm(sparse.csr_array(x), axis=1)
    dots = ((x @ mean.T) * own).sum(axis=1)
    return dots / np.maximum(lengths * np.linalg.norm(mean), 1e-30), None  # empty rows: 0


def by_cleanlab(data: real_data.RealData, seed: int) -> Found:
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    shares = cross_val_predict(
        LogisticRegression(max_iter=1000),
        *(data.features, data.given),
        cv=folds,
        method="predict_proba",
    )
    flag = find_label_issues(data.given, shares, n_jobs=1)
    return get_label_quality_scores(data.given, shares, method="self_confidence"), flag


METHODS: dict[str, Callable[[real_data.RealData, int], Found]] = {
    "AGRA": by_agra,
    'AGRA, "any"': partial(by_agra, alternative_label="any"),
    "cleanlab": by_cleanlab,
    "static score": by_static_score,
}


def measure(data: real_data.RealData, method: str, seeds: range) -> Row:
    wrong = data.given != data.truth
    areas, precisions, f1s, seconds = [], [], [], []
    for seed in seeds:
        start = time.process_time()
        quality, flag = METHODS[method](data, seed)
        seconds.append(time.process_time() - start)
        areas.append(roc_auc_score(wrong, -quality))
        precisions.append(average_precision_score(wrong, -quality))
        if flag is not None:
            f1s.append(f1_score(wrong, flag))
    return Row(
        data.name,
        method,
        float(wrong.mean()),
        fmean(areas),
        pstdev(areas),
        fmean(precisions),
        fmean(f1s) if f1s else None,
        float(np.median(seconds)),
    )


def show(rows: list[Row], *, markdown: bool) -> None:
    headers = ["data", "wrong", "method", "area under ROC", "precision", "F1", "CPU s"]
    sections = []
    for name in dict.fromkeys(row.data for row in rows):
        own = [row for row in rows if row.data == name]
        sections.append(
            [
                [
                    name if row is own[0] else "",
                    f"{row.wrong:.1%}" if row is own[0] else "",
                    row.method,
                    f"{row.area:.3f} ± {row.area_deviation:.3f}",
                    f"{row.precision:.3f}",
                    "-" if row.f1 is None else f"{row.f1:.3f}",
                    f"{row.cpu_seconds:.2f}",
                ]
                for row in own
            ]
        )
    total = [
        ["all" if m == "AGRA" else "", "", m, "", "", "", f"{_seconds(rows, m):.2f}"]
        for m in METHODS
    ]
    results.show(headers, [*sections, total], words=3, markdown=markdown)


def _seconds(rows: list[Row], method: str) -> float:
    return sum(row.cpu_seconds for row in rows if row.method == method)


@click.command(context_settings={"show_default": True})
@click.option("--seeds", type=click.IntRange(min=1), default=5)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "label_errors.json",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(*, seeds: int, output: Path, markdown: bool) -> None:
    """Find wrong labels, write down how well, and show it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        rows = [
            measure(data, method, range(1 if many and method == "cleanlab" else seeds))
            for data in real_data.classification()
            for many in [data.features.shape[0] > 10_000]
            for method in METHODS
        ]
    result: dict[str, Any] = results.environment(("torch", "scikit-learn", "cleanlab"))
    result |= {"seeds": seeds, "rows": [asdict(row) for row in rows]}
    results.write(output, result)
    show(rows, markdown=markdown)


if __name__ == "__main__":
    main()

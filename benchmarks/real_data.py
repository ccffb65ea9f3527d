"""Real data with real label errors, from a data home (``AGRA_DATA_HOME``)."""

import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.metrics import accuracy_score

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from text_sets import TEXT_SETS, encoded, load

IMAGES = ("CIFAR-10",)
_NOISE = "cifar10_noisy_labels__frac_zero_noise_rates__0.6__noise_amount__0.2.json.gz"


@dataclass(frozen=True)
class RealData:
    """A training set with given and true labels, and a test set.

    Attributes:
        name: Of the set.
        features: Training rows.
        given: Their noisy labels.
        truth: Their true ones.
        covered: Which of them got a vote from any rule; the others' labels are drawn by lot.
        test: Test rows and true labels.
        score: From true and predicted labels, the set's metric.
        settings: Those of the paper for this set, for `AgraClassifier`; none for the defaults.
        peer_c: C of scikit-learn's logistic regression.
    """

    name: str
    features: Any
    given: Any
    truth: Any
    covered: Any
    validation: tuple[Any, Any]
    test: tuple[Any, Any]
    score: Callable[[Any, Any], float]
    settings: dict[str, Any]
    scoring: str
    peer_c: float


NAMES = {
    "youtube": "YouTube",
    "sms": "SMS",
    "trec": "TREC",
    "yoruba": "Yorùbá",
    "hausa": "Hausa",
}


def texts() -> Iterator[RealData]:
    """The five text sets of the paper, as TF-IDF rows with majority-vote labels."""
    if not (home() / "text").is_dir():
        raise click.ClickException(f"Expected text/ in AGRA_DATA_HOME={home()}, found none.")
    for text_set in TEXT_SETS:
        splits, given, _ = encoded(text_set.name)
        votes = load(text_set.name, "train")[2]
        settings = {
            "criterion": text_set.criterion,
            "weights": text_set.weights,
            "learning_rate": text_set.learning_rate,
            "batch_size": text_set.batch_size,
            "weight_decay": text_set.weight_decay,
            "epochs": 10,
        }
        yield RealData(
            NAMES[text_set.name],
            *(splits["train"][0], given, splits["train"][1]),
            np.array([max(row) >= 0 for row in votes]),
            *(splits["valid"], splits["test"], text_set.score, settings),
            text_set.scoring,
            1.0,
        )


def images() -> Iterator[RealData]:
    """CIFAR-10 with the 20 % noise of confident learning; nothing if the features are not there."""
    path = home() / "cifar10" / "features.npz"
    path = Path(os.environ.get("AGRA_IMAGE_FEATURES", path))
    if not path.is_file():
        click.echo(f"CIFAR-10 left out: no {path}; see benchmarks/image_features.py", err=True)
        return
    with np.load(path, allow_pickle=False) as arrays:
        features, truth = arrays["x"], arrays["y"].astype(np.int64)
    noisy = json.loads(gzip.decompress((home() / "cifar10" / _NOISE).read_bytes()))
    given = np.empty(50_000, dtype=np.int64)
    for name, label in noisy.items():
        given[int(re.findall(r"\d+", Path(name).stem)[-1])] = label
    train, valid, test = slice(50_000), slice(50_000, 55_000), slice(55_000, None)
    yield RealData(
        "CIFAR-10",
        *(features[train], given, truth[train], np.ones(len(given), dtype=bool)),
        *((features[valid], truth[valid]), (features[test], truth[test]), accuracy_score, {}),
        "accuracy",
        0.01,
    )


def classification() -> Iterator[RealData]:
    """All of them."""
    yield from texts()
    yield from images()


def home() -> Path:
    """The data home."""
    if "AGRA_DATA_HOME" not in os.environ:
        raise click.ClickException("Expected AGRA_DATA_HOME to name a data home, got nothing.")
    return Path(os.environ["AGRA_DATA_HOME"])

"""The paper's five text sets from a data home, as TF-IDF rows with majority-vote labels."""

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, f1_score


@dataclass(frozen=True)
class TextSet:
    """A set, its hyper-parameters in the paper (appendix E), and what a prototype reached."""

    name: str
    criterion: str
    weights: str
    learning_rate: float
    batch_size: int
    weight_decay: float
    metric: str
    noise: float
    reached: float
    deviation: float

    @property
    def scoring(self):
        """The metric, as scikit-learn calls it."""
        return {"accuracy": "accuracy", "f1": "f1", "macro-f1": "f1_macro"}[self.metric]

    def score(self, truth, predicted):
        if self.metric == "accuracy":
            return accuracy_score(truth, predicted)
        if self.metric == "f1":
            return f1_score(truth, predicted, zero_division=0)
        return f1_score(truth, predicted, average="macro", zero_division=0)


TEXT_SETS = [
    TextSet("youtube", "f1", "uniform", 1e-2, 32, 1e-3, "accuracy", 18.8, 93.4, 0.6),
    TextSet("sms", "cross-entropy", "inverse-frequency", 1e-3, 128, 1e-3, "f1", 31.9, 86.8, 2.1),
    TextSet("trec", "f1", "inverse-frequency", 1e-1, 32, 1e-4, "accuracy", 48.2, 62.6, 0.6),
    TextSet("yoruba", "f1", "inverse-frequency", 1e-1, 512, 1e-4, "macro-f1", 42.3, 45.3, 2.1),
    TextSet("hausa", "f1", "inverse-frequency", 1e-1, 512, 1e-4, "macro-f1", 50.6, 46.7, 0.6),
]


def data_home():
    """The folder of the sets, or a skip that says what is missing."""
    home = os.environ.get("AGRA_DATA_HOME")
    if home is None or not (Path(home) / "text").is_dir():
        pytest.skip("needs the text sets: point AGRA_DATA_HOME to a folder that holds text/")
    return Path(home)


def load(name, split):
    """Texts, true labels and votes of one split."""
    rows = json.loads((data_home() / "text" / name / f"{split}.json").read_text(encoding="utf-8"))
    ordered = [rows[str(i)] for i in range(len(rows))]
    texts = [row["data"]["text"] for row in ordered]
    votes = [row["weak_labels"] for row in ordered]
    return texts, np.array([row["label"] for row in ordered]), votes


def majority(votes, num_classes):
    """The most frequent vote of each row; no vote counts as all, ties fall by a hash of the row."""
    labels = []
    for index, row in enumerate(votes):
        counts = Counter(vote for vote in row if vote >= 0) or Counter(range(num_classes))
        top = max(counts.values())
        tied = sorted(vote for vote, count in counts.items() if count == top)
        digest = hashlib.sha1(str(index).encode(), usedforsecurity=False).hexdigest()
        labels.append(tied[int(digest, 16) % len(tied)])
    return np.array(labels)


def encoded(name):
    """Float32 TF-IDF rows and true labels of all splits, and the noisy training labels."""
    texts, truth, votes = load(name, "train")
    num_classes = int(truth.max()) + 1
    vectorizer = TfidfVectorizer(dtype=np.float32)
    splits = {"train": (vectorizer.fit_transform(texts), truth)}
    for split in ("valid", "test"):
        texts, labels, _ = load(name, split)
        splits[split] = (vectorizer.transform(texts), labels)
    return splits, majority(votes, num_classes), num_classes

"""Which labels look wrong, by what happened to them while a model was trained."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from agra.labels import IGNORE_LABEL, labelled
from agra.ledger import Ledger

Array = np.ndarray[Any, Any]


class Summary(NamedTuple):
    """Label issues at a glance.

    Attributes:
        classes: Per given class or label how many, how many look wrong, drop rate and quality.
        confusion: How many given labels (rows) that look wrong should be which (columns).
    """

    classes: pd.DataFrame
    confusion: pd.DataFrame


@dataclass(frozen=True)
class LabelIssues:
    """What a run says of every given label: (N,), or (N, K) for several labels per sample.

    Attributes:
        given: Class indices, ``IGNORE_LABEL`` for none; or a 0/1 matrix, NaN where unknown.
        predicted: What the trained model says.
        confidence: Its probability of that.
        quality: In [0, 1], low is suspicious; NaN where a label was never judged.
        drop_rate: Of how many judgements it was left out.
        mean_score: Its similarity to the comparison batches.
    """

    given: Tensor
    predicted: Tensor
    confidence: Tensor
    quality: Tensor
    drop_rate: Tensor
    mean_score: Tensor

    @classmethod
    def of(
        cls, given: Tensor, outputs: "tuple[Tensor, Tensor]", ledger: Ledger, rows: Tensor | None
    ) -> "LabelIssues":
        """From the ledger of a run.

        Args:
            given: The labels of all samples.
            outputs: What the trained model predicts for them, and its probability.
            ledger: Of the samples that took part.
            rows: Which these were; None for all.
        """
        totals = ledger.totals
        judged = totals["judged"].float()
        columns = {
            "quality": label_quality(ledger),
            "drop_rate": totals["dropped"] / judged,
            "mean_score": totals["score_sum"] / totals["scored"],
        }
        if rows is not None:
            columns = {name: _spread(part, rows, len(given)) for name, part in columns.items()}
        unknown = ~labelled(given)
        columns = {name: part.masked_fill(unknown, torch.nan) for name, part in columns.items()}
        return cls(given, *outputs, **columns)

    @property
    def is_issue(self) -> Tensor:
        """Whether a label looks wrong."""
        return (self.quality < 0.5) & (self.predicted != self.given)

    def to_frame(self, classes: Array, index: Any = None) -> pd.DataFrame:
        """One row per sample, or per (sample, label).

        Args:
            classes: The classes or labels.
            index: Of the samples; None for 0, 1, 2, ...
        """
        given, predicted = self._named(self.given, classes), self._named(self.predicted, classes)
        issue = self.is_issue.flatten().numpy()
        confidence = self.confidence.flatten().numpy()
        columns = {
            "is_label_issue": issue,
            "label_quality": self.quality.flatten().numpy(),
            "given_label": given,
            "predicted_label": predicted,
            "drop_rate": self.drop_rate.flatten().numpy(),
            "mean_score": self.mean_score.flatten().numpy(),
            "suggested_label": pd.Series(predicted).where(issue).array,
            "confidence": np.where(issue, confidence, np.nan),
        }
        index = pd.RangeIndex(len(self.given)) if index is None else index
        if self.given.ndim == 2:
            names = [index.name or "sample", "label"]
            index = pd.MultiIndex.from_product([index, classes], names=names)
        return pd.DataFrame(columns, index=index)

    def _named(self, codes: Tensor, classes: Array) -> Any:
        if codes.ndim == 2:
            return pd.array(codes.flatten().numpy(), dtype="Float32").astype("Int8")
        known = codes != IGNORE_LABEL
        names = pd.Series(classes[codes.clamp(min=0).numpy()])
        return (names if bool(known.all()) else names.where(known.numpy())).array

    def summary(self, classes: Array) -> Summary:
        """Counts per class, and which should be which.

        Args:
            classes: The classes or labels.
        """
        kinds = classes if self.given.ndim == 1 else np.array([0, 1])
        given = self.given.flatten()
        known = labelled(given)
        frame = pd.DataFrame(
            {
                "given": _categories(torch.where(known, given, -1), kinds),
                "predicted": _categories(self.predicted.flatten(), kinds),
                "issue": self.is_issue.flatten().numpy(),
                "drop_rate": self.drop_rate.flatten().numpy(),
                "label_quality": self.quality.flatten().numpy(),
            }
        )
        keys: Any = "given"
        if self.given.ndim == 2:
            frame["label"] = _categories(
                torch.arange(len(classes)).repeat(len(self.given)), classes
            )
            keys = ["label", "given"]
        groups = frame.groupby(keys, observed=False)
        per_class = groups.agg(
            samples=("issue", "size"),
            issues=("issue", "sum"),
            share=("issue", "mean"),
            drop_rate=("drop_rate", "mean"),
            label_quality=("label_quality", "mean"),
        )
        suspicious = frame[frame["issue"]]
        confusion = suspicious.groupby([*np.atleast_1d(keys), "predicted"], observed=False).size()
        return Summary(per_class, confusion.unstack("predicted"))


def label_quality(ledger: Ledger) -> Tensor:
    """How far a run trusts each given label: in [0, 1], NaN where it was never judged.

    The model's probability of the given label, averaged over the epochs. A label that was left out
    was not learned, so that its probability stays that of an outsider.
    """
    totals = ledger.totals
    return totals["probability_sum"] / totals["judged"]


def _categories(codes: Tensor, kinds: Any) -> Any:
    return pd.Categorical.from_codes(codes.int().numpy(), categories=kinds)


def _spread(part: Tensor, rows: Tensor, total: int) -> Tensor:
    spread = part.new_full((total, *part.shape[1:]), torch.nan)
    spread[rows] = part
    return spread

"""Scores to verdicts: keep, drop or relabel. The rules of Algorithms 1 and 2; no models here."""

from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from agra.gradients.engine import Products
from agra.labels import IGNORE_LABEL, class_rows, is_soft, labelled, sample_labelled, signed


@dataclass(frozen=True)
class Decisions:
    """The verdict on every sample of a batch, or on every entry for several labels per sample.

    Attributes:
        labels: What to learn from, shaped as given; ``IGNORE_LABEL`` where dropped.
        scores: Cosine under the given label, Eq. (1); NaN where no norm was needed or no label
            was given.
        kept: The given label stays.
        dropped: Left out of this update.
        relabelled: Another label took the given one's place.
    """

    labels: Tensor
    scores: Tensor
    kept: Tensor
    dropped: Tensor
    relabelled: Tensor

    @classmethod
    def of(cls, given: Tensor, labels: Tensor, scores: Tensor) -> "Decisions":
        """From what was given, and what a rule made of it.

        Args:
            given: The given labels.
            labels: What to learn from.
            scores: Under the given labels.
        """
        known = labelled(labels)
        if given.is_floating_point() and scores.ndim == 1:  # soft labels: rows stay or go
            known, same = known.all(dim=1), (labels == given).all(dim=1)
        else:
            same = labels == given
        return cls(labels, scores, known & same, ~known, known & ~same)


@dataclass(frozen=True)
class Rule:
    """Algorithm 1: one label per sample.

    Attributes:
        alternative_label: A class that a sample may be given instead of its own, "any" for the
            best of all classes, or None to only keep or drop.
        threshold: A score must be above it; at exactly the threshold a sample is dropped.
        eps: Added to the product of the norms in the score; the published code has 1e-6.
        scores: Compute the score under the given label even where the verdict does not need it.

    Example:
        >>> rule = Rule(alternative_label="any")
        >>> rule.candidates(torch.tensor([1]), num_classes=3).classes.tolist()
        [0, 1, 2]
    """

    alternative_label: int | Literal["any"] | None = None
    threshold: float = 0.0
    eps: float = 0.0
    scores: bool = False

    def __post_init__(self) -> None:
        _check_limits(self.threshold, self.eps)
        label = self.alternative_label
        if isinstance(label, bool) or not (label is None or label == "any" or _is_class(label)):
            raise ValueError(
                f'Expected `alternative_label` to be a class index, "any" or None, got {label!r}.'
            )

    @property
    def may_need_norms(self) -> bool:
        """Whether some verdict may depend on more than the sign of a dot product."""
        return self.scores or self.threshold != 0 or self.alternative_label is not None

    def candidates(
        self, labels: Tensor, num_classes: int, mask: Tensor | None = None
    ) -> "Candidates":
        """The labels tried for each sample, the given one first.

        Args:
            labels: The given labels.
            num_classes: How many classes the model tells apart.
            mask: (N, K) booleans, the classes that each sample may be relabelled to; None for all.

        Raises:
            ValueError: The alternative label is no class, or the mask does not fit.
        """
        label = self.alternative_label
        if not (label is None or label == "any") and label >= num_classes:
            raise ValueError(
                f"Expected `alternative_label` to be in [0, {num_classes - 1}], one class per "
                f"output of the model, got {label}."
            )
        given = sample_labelled(labels).unsqueeze(1)
        if label is None and mask is None:
            return Candidates(labels, torch.empty(0, dtype=torch.long), given)
        others = range(num_classes) if label == "any" else () if label is None else (label,)
        classes = torch.tensor(others, dtype=torch.long, device=labels.device)
        # y = y': there is nothing to relabel
        new = labels[:, classes] != 1 if is_soft(labels) else labels.unsqueeze(1) != classes
        if mask is not None:
            check_mask(mask, len(labels), num_classes)
            new &= mask[:, classes]
        return Candidates(labels, classes, torch.cat([given, new], dim=1))

    def norms_wanted(self, candidates: "Candidates", dots: Tensor | None = None) -> Tensor | None:
        """Where norms are needed: before the dot products are known, and after.

        At threshold 0 signs decide, unless several candidates are positive and must be ranked.
        """
        allowed = candidates.allowed
        if self.threshold != 0:
            return allowed
        if not self.scores and allowed.shape[1] == 1:
            return None
        wanted = torch.zeros_like(allowed)
        if self.scores:
            wanted[:, 0] = allowed[:, 0]
        if dots is not None:
            positive = (dots > 0) & allowed
            wanted |= positive & (positive.sum(dim=1, keepdim=True) >= 2)
        return wanted if bool(wanted.any()) else None

    def decide(self, candidates: "Candidates", products: Products) -> Decisions:
        """Keep, drop or relabel every sample (section 3.1).

        Args:
            candidates: The labels tried.
            products: Dot products and, where `norms_wanted` said so, squared norms.
        """
        scores = products.cosine(self.eps)[:, 0].where(candidates.allowed[:, 0], torch.nan)
        return Decisions.of(signed(candidates.given), self.choose(candidates, products), scores)

    def choose(self, candidates: "Candidates", products: Products) -> Tensor:
        """What to learn each sample as; ``IGNORE_LABEL`` where it is dropped.

        Args:
            candidates: The labels tried.
            products: As for `decide`.
        """
        ranked, labels = _ranked(products, self.eps), signed(candidates.given)
        learned = (ranked[:, 0] > self.threshold) & candidates.allowed[:, 0]
        if len(candidates.classes):
            ranked = ranked.where(candidates.allowed, -torch.inf)
            best, column = ranked[:, 1:].max(dim=1)
            better = (best > self.threshold) & (best > ranked[:, 0])
            labels = labels.clone()
            labels[better] = _like(candidates.classes[column[better]], labels)
            learned |= better
        rows = learned.unsqueeze(1) if is_soft(labels) else learned
        return labels.masked_fill(~rows, IGNORE_LABEL)


def _ranked(products: Products, eps: float) -> Tensor:
    # where no norm was needed the sign says all; any positive number stands for it
    if products.squared_norms is None:
        return products.dots
    scores = products.cosine(eps)
    return torch.where(scores.isnan(), products.dots.sign(), scores)


def _like(classes: Tensor, labels: Tensor) -> Tensor:
    if is_soft(labels):
        return class_rows(classes, labels.shape[1], labels.dtype)
    return classes.to(labels.dtype)


@dataclass(frozen=True)
class Candidates:
    """The labels tried for a batch.

    Attributes:
        given: The given labels, class indices or soft rows.
        classes: (C - 1,), the other classes tried.
        allowed: (N, C), whether a sample may take the given label, and each of the classes.
    """

    given: Tensor
    classes: Tensor
    allowed: Tensor

    def columns(self) -> list[Tensor]:
        """One labelling of the whole batch per candidate, the given one first."""
        if not len(self.classes):
            return [self.given]
        size = (len(self.given),)
        return [self.given, *(label.expand(size) for label in self.classes)]


@dataclass(frozen=True)
class MultilabelRule:
    """Algorithm 2: several labels per sample, each entry kept or dropped by itself.

    Attributes:
        threshold: A score must be above it.
        eps: Added to the product of the norms in the score.
        scores: Compute scores even where the verdict does not need them.

    Example:
        >>> MultilabelRule(threshold=0.1).may_need_norms  # signs decide only at 0
        True
    """

    threshold: float = 0.0
    eps: float = 0.0
    scores: bool = False

    def __post_init__(self) -> None:
        _check_limits(self.threshold, self.eps)

    @property
    def may_need_norms(self) -> bool:
        """Whether some verdict may depend on more than the sign of a dot product."""
        return self.scores or self.threshold != 0

    def decide(self, labels: Tensor, products: Products) -> Decisions:
        """Keep or drop every entry (N, K); unknown entries are dropped."""
        scores = products.cosine(self.eps).masked_fill(~labelled(labels), torch.nan)
        return Decisions.of(signed(labels), self.choose(labels, products), scores)

    def choose(self, labels: Tensor, products: Products) -> Tensor:
        """What to learn each entry as; ``IGNORE_LABEL`` where it is dropped."""
        kept = (_ranked(products, self.eps) > self.threshold) & labelled(labels)
        return signed(labels).masked_fill(~kept, IGNORE_LABEL)


def check_mask(mask: Tensor, num_samples: int, num_classes: int) -> None:
    """Refuse a mask of candidates that is not one boolean per sample and class.

    Raises:
        ValueError: Another type or shape.
    """
    if mask.dtype != torch.bool or mask.shape != (num_samples, num_classes):
        raise ValueError(
            f"Expected `mask` to be booleans of shape ({num_samples}, {num_classes}), one "
            f"per sample and class, got {mask.dtype} of shape {tuple(mask.shape)}."
        )


def _is_class(label: object) -> bool:
    return isinstance(label, Integral) and int(label) >= 0  # NumPy's integers too


def _check_limits(threshold: float, eps: float) -> None:
    if not -1 <= threshold <= 1:
        raise ValueError(f"Expected `threshold` to be in [-1, 1], got {threshold}.")
    if not eps >= 0:
        raise ValueError(f"Expected `eps` to be at least 0, got {eps}.")

"""How far labelling functions reach, and how often they contradict each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from agra.label_models.votes import Array, as_votes


@dataclass(frozen=True)
class Coverage:
    """What all labelling functions reach together.

    Attributes:
        covered: The share of rows with a vote.
        conflicting: The share of rows with votes for different classes.
        votes_per_row: How many functions vote, on average over all rows.
    """

    covered: float
    conflicting: float
    votes_per_row: float


def coverage_summary(votes: Any, num_classes: int) -> Coverage:
    """What the functions reach together; all zero where there are no rows.

    Args:
        votes: (N, F), class indices, -1 where a function abstained.
        num_classes: How many classes there are.

    Raises:
        ValueError: Votes that are none.

    Example:
        >>> coverage_summary([[0, 1], [1, 1], [-1, 0], [-1, -1]], 2)
        Coverage(covered=0.75, conflicting=0.25, votes_per_row=1.25)
    """
    votes = as_votes(votes, num_classes)
    voters = (votes >= 0).sum(axis=1)
    rows = max(1, len(votes))
    return Coverage(
        covered=float((voters > 0).sum() / rows),
        conflicting=float(_disagree(votes, num_classes).sum() / rows),
        votes_per_row=float(voters.sum() / rows),
    )


def function_table(
    votes: Any, classes: Sequence[str], *, functions: Sequence[str] = (), true_labels: Any = None
) -> pd.DataFrame:
    """One row per labelling function: what it votes for, and how often.

    The columns are ``classes``, the names of those it votes for; ``coverage``, the share of rows
    it votes on; ``overlap``, the share of rows another function votes on, too; ``conflict``, the
    share of rows where another votes differently; and, where true labels are given, ``accuracy``,
    the share of its votes that are right, of rows whose true label is known; NaN if there are none.

    Args:
        votes: (N, F), class indices, -1 where a function abstained.
        classes: Their names.
        functions: The names of the functions; by default 0, 1, 2, ...
        true_labels: (N,) class indices, negative where unknown.

    Raises:
        ValueError: Votes, names or true labels that do not fit together.

    Example:
        >>> votes = [[1, 1], [1, 0], [-1, 0], [-1, -1]]
        >>> table = function_table(
        ...     votes, ("ham", "spam"), functions=("link", "short"), true_labels=[1, 1, 0, 0]
        ... )
        >>> table.loc["link"].to_dict()
        {'classes': ('spam',), 'coverage': 0.5, 'overlap': 0.5, 'conflict': 0.25, 'accuracy': 1.0}
    """
    votes = as_votes(votes, len(classes))
    cast = votes >= 0
    names = [str(name) for name in functions] or [str(n) for n in range(votes.shape[1])]
    if len(names) != votes.shape[1]:
        raise ValueError(
            f"Expected `functions` to name each column of `votes` ({votes.shape[1]}), got "
            f"{len(names)} names."
        )
    shared = cast.sum(axis=1) > 1
    disagree = _disagree(votes, len(classes))
    rows = max(1, len(votes))
    used = np.zeros((votes.shape[1], len(classes) + 1), dtype=bool)
    used[np.arange(votes.shape[1]), votes] = True  # where -1, no vote, is the last column
    columns = {
        "classes": [tuple(classes[k] for k in np.flatnonzero(row[:-1]).tolist()) for row in used],
        "coverage": cast.sum(axis=0) / rows,
        "overlap": cast[shared].sum(axis=0) / rows,
        "conflict": cast[disagree].sum(axis=0) / rows,
    }
    if true_labels is not None:
        columns["accuracy"] = _accuracies(votes, true_labels)
    return pd.DataFrame(columns, index=pd.Index(names, name="function"))


def _disagree(votes: Array, num_classes: int) -> Array:
    """Rows with votes for two classes at least: each of their voters is contradicted by another."""
    highest = votes.max(axis=1, initial=-1)
    lowest = np.where(votes >= 0, votes, num_classes).min(axis=1, initial=num_classes)
    return lowest < highest


def _accuracies(votes: Array, true_labels: Any) -> Array:
    truth = np.asarray(true_labels)
    if truth.shape != (len(votes),) or (truth.size and truth.dtype.kind not in "iu"):
        raise ValueError(
            f"Expected `true_labels` to be one class index per row of `votes` ({len(votes)}), got "
            f"{truth.dtype} of shape {truth.shape}."
        )
    counted = (votes >= 0) & (truth >= 0)[:, None]
    right = (counted & (votes == truth[:, None])).sum(axis=0)
    total = counted.sum(axis=0)
    return np.where(total > 0, right / np.maximum(total, 1), np.nan)

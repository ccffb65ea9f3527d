"""FlyingSquid: each function's accuracy in closed form, from how triplets of functions agree.

Fu et al. 2020, "Fast and three-rious: speeding up weak supervision with triplet methods", for
functions that are independent given the class.
"""

from typing import Any, Literal

import numpy as np

from agra.label_models.model import LabelModel
from agra.label_models.overlaps import add_up, overlap_counts
from agra.label_models.votes import Array
from agra.names import check_name

_PARTNERS = 72  # functions whose pairs are all looked at; of more, as many pairs are drawn
_HIGHEST = 0.99  # no finite number of votes proves that a function is always right
_SHARE = 1e-12  # of a class that never occurs


class FlyingSquid(LabelModel):
    """Reads accuracies off triplets of functions, one class against the rest at a time.

    With votes v = 1 for the class and -1 for another, E[v_i v_j] = a_i a_j over the rows where
    both vote, where a = E[v Y] of the functions; so |a_i| = sqrt(|E[v_i v_j] E[v_i v_k] /
    E[v_j v_k]|) for any j and k. The median over the pairs (j, k) is taken, which a few rare
    overlaps do not move as they would the mean, and functions count as better than random. The
    posterior is naive Bayes with these accuracies, normalised over the classes.

    The moments assume that a function errs in all classes alike. Functions that vote for one class
    only always agree or always contradict each other where they meet: in triplets they all get the
    highest accuracy, 0.99, so that they vote by majority, unless moments are over all rows.

    Args:
        num_classes: K; by default the highest vote and one more, two at least.
        class_balance: (K,), the share of each class; uniform by default. `balance_of` tells it of
            labels.
        moments: Rows over which means are taken: "co-voting", those where both vote; or "all-rows",
            a missing vote being zero, as in the authors' package: then how often functions meet is
            evidence, too, which helps on some sets and harms on others.
        default_accuracy: Of a function that is in no triplet.
        seed: Of the pairs that are drawn where a function meets more than 72 others.

    Attributes:
        accuracies_: (F, K), how often a function is right on whether a row is of a class.

    Example:
        >>> votes = [[0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 1, 0], [0, 1, 0], [1, 1, 1]]
        >>> model = FlyingSquid().fit(votes)
        >>> model.predict([[0, 0, 1], [1, 1, -1]]).tolist()
        [0, 1]
    """

    accuracies_: Array

    def __init__(
        self,
        *,
        num_classes: int | None = None,
        class_balance: Any = None,
        moments: Literal["co-voting", "all-rows"] = "co-voting",
        default_accuracy: float = 0.7,
        seed: int = 0,
    ) -> None:
        self.num_classes = num_classes
        self.class_balance = class_balance
        self.moments = moments
        self.default_accuracy = default_accuracy
        self.seed = seed

    def _fit(self, votes: Array) -> None:
        if not 0 < self.default_accuracy < 1:
            raise ValueError(
                f"Expected `default_accuracy` to be in (0, 1), got {self.default_accuracy}."
            )
        check_name("moments", self.moments, ["co-voting", "all-rows"])
        sums, together = _products(overlap_counts(votes, len(self.classes_)), len(self.classes_))
        rows = together if self.moments == "co-voting" else np.full_like(together, len(votes))
        means = np.where(together > 0, sums / np.maximum(rows, 1), np.nan)
        rng = np.random.default_rng(self.seed)
        found = [_from_triplets(means, f, rng) for f in range(len(together))]
        correlations = np.array(found).reshape(len(together), len(self.classes_))
        correlations *= (np.diag(rows) / np.maximum(np.diag(together), 1))[:, None]
        accuracies = np.minimum((1 + correlations) / 2, _HIGHEST)
        self.accuracies_ = np.where(np.isnan(accuracies), self.default_accuracy, accuracies)

    def _log_joint(self, votes: Array) -> Array:
        weights = np.log(self.accuracies_ / (1 - self.accuracies_))  # (F, K)
        signs = 2 * np.eye(len(self.classes_)) - 1
        table = weights[:, None, :] * signs  # (F, vote, class)
        balance = np.clip(self.class_balance_, _SHARE, 1 - _SHARE)
        odds = add_up(votes, table.reshape(-1, len(signs))) + np.log(balance / (1 - balance))
        return -np.logaddexp(0, -odds)  # the logarithm of the class's probability against the rest


def _products(counts: Array, num_classes: int) -> tuple[Array, Array]:
    """Sums of v_i v_j, each class against the rest (K, F, F), and rows where both vote (F, F)."""
    functions = len(counts) // num_classes
    blocks = counts.reshape(functions, num_classes, functions, num_classes)
    signs = 2 * np.eye(num_classes) - 1
    sums = np.einsum("cijl,cl->cij", np.einsum("ikjl,ck->cijl", blocks, signs), signs)
    return sums, blocks.sum(axis=(1, 3))


def _from_triplets(means: Array, function: int, rng: np.random.Generator) -> Array:
    """The function's correlation with each class: (K,), NaN where no triplet tells."""
    partners = np.flatnonzero(~np.isnan(means[0, function]))
    partners = partners[partners != function]
    if len(partners) <= _PARTNERS:
        first, second = np.triu_indices(len(partners), 1)
    else:
        first, second = rng.integers(len(partners), size=(2, _PARTNERS * _PARTNERS // 2))
        first, second = first[first != second], second[first != second]
    first, second = partners[first], partners[second]
    between = means[:, first, second]
    known = ~np.isnan(between) & (between != 0)
    products = means[:, function, first] * means[:, function, second]
    found = np.sqrt(np.abs(products / np.where(known, between, 1)))
    return np.array([_median(row[told]) for row, told in zip(found, known, strict=True)])


def _median(values: Array) -> float:
    return float(np.median(values)) if len(values) else np.nan

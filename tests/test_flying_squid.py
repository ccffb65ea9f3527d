"""FlyingSquid: by hand, as plain loops, planted accuracies, refusals; and the class balance."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from agra.label_models.balance import balance_of
from agra.label_models.flying_squid import FlyingSquid
from agra.label_models.majority import majority_vote
from planted_moments import DEGENERATE, NONE, Planted
from test_majority import vote_matrices
from text_sets import load

WAYS = ["co-voting", "all-rows"]

# of 16 rows the first agrees with each other on 11, and the others with each other on 10: the means
# of the products are 3/8, 3/8 and 1/4, which 3/4 * 1/2, 3/4 * 1/2 and 1/2 * 1/2 explain
BY_HAND = np.array([[1, 1, 1]] * 8 + [[0, 0, 1]] * 3 + [[1, 0, 1]] * 3 + [[0, 1, 1]] * 2)


def plain_accuracies(votes, num_classes, way):
    """The same as loops over rows and triplets; NaN where no triplet tells."""
    rows, functions = votes.shape
    accuracies = np.full((functions, num_classes), np.nan)
    for k in range(num_classes):
        signs = [[0 if v < 0 else 1 if v == k else -1 for v in row] for row in votes.tolist()]

        def mean(i, j, signs=signs):
            products = [row[i] * row[j] for row in signs if row[i] and row[j]]
            return sum(products) / (len(products) if way == "co-voting" else rows)

        def meet(i, j):
            return any((votes[:, i] >= 0) & (votes[:, j] >= 0))

        for i in range(functions):
            found = [
                abs(mean(i, j) * mean(i, m) / mean(j, m)) ** 0.5
                for j, m in combinations([f for f in range(functions) if f != i], 2)
                if meet(i, j) and meet(i, m) and meet(j, m) and mean(j, m) != 0
            ]
            if found:
                scale = (votes[:, i] >= 0).mean() if way == "all-rows" else 1
                accuracies[i, k] = min(0.99, (1 + np.median(found) / scale) / 2)
    return accuracies


def test_three_functions_by_hand():
    model = FlyingSquid().fit(BY_HAND)
    np.testing.assert_allclose(model.accuracies_, [[7 / 8] * 2, [3 / 4] * 2, [3 / 4] * 2])
    rows = [[1, 1, 1], [1, 0, 0], [NONE, 1, NONE], [NONE] * 3]
    expected = [63 / 64, 7 / 16, 3 / 4, 1 / 2]  # odds 7 * 3 * 3, 7 / 9, 3, 1
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], expected)
    model = FlyingSquid(class_balance=[0.75, 0.25]).fit(BY_HAND)
    expected = [21 / 22, 7 / 34, 1 / 2, 1 / 4]  # all odds times 1 / 3
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], expected)


def test_classes_against_the_rest_share_the_probability():
    votes = np.where(BY_HAND == 1, 2, BY_HAND)
    model = FlyingSquid(num_classes=3).fit(votes)
    np.testing.assert_allclose(
        model.accuracies_[:, [0, 2]], [[7 / 8] * 2, [3 / 4] * 2, [3 / 4] * 2]
    )
    # nobody votes for class 1, on which all always agree
    np.testing.assert_allclose(model.accuracies_[:, 1], 0.99)
    odds = np.array([1 / 2 / 3, 1 / 2 / 99, 3 / 2])  # the prior's odds, and one vote for class 2
    against_rest = odds / (1 + odds)
    expected = against_rest / against_rest.sum()
    np.testing.assert_allclose(model.predict_proba([[NONE, NONE, 2]])[0], expected)


@pytest.mark.parametrize("way", WAYS)
@given(case=vote_matrices())
@settings(deadline=None)
def test_accuracies_are_those_of_plain_loops(way, case):
    votes, num_classes = case
    expected = plain_accuracies(votes, num_classes, way)
    model = FlyingSquid(num_classes=num_classes, moments=way, default_accuracy=0.6).fit(votes)
    np.testing.assert_allclose(model.accuracies_, np.where(np.isnan(expected), 0.6, expected))


@pytest.mark.parametrize("way", WAYS)
def test_planted_accuracies_are_found(way):
    case = Planted((0.95, 0.85, 0.75, 0.65, 0.55), (1, 0.9, 0.7, 0.8, 1), (0.5, 0.5), rows=40_000)
    model = FlyingSquid(moments=way).fit(case.draw()[0])
    np.testing.assert_allclose(model.accuracies_[:, 1], case.accuracies, atol=0.02)


def test_functions_count_as_better_than_random():
    case = Planted((0.9, 0.8, 0.3), (1, 1, 1), (0.5, 0.5), rows=20_000)
    model = FlyingSquid().fit(case.draw()[0])
    np.testing.assert_allclose(model.accuracies_[:, 0], [0.9, 0.8, 0.7], atol=0.02)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_better_than_the_majority_where_accuracies_differ(count, way):
    balance = tuple(np.full(count, 1 / count))
    case = Planted((0.95, 0.9, 0.6, 0.55, 0.5, 0.5), (0.8,) * 6, balance, rows=5000)
    votes, truth = case.draw()
    covered = (votes >= 0).any(axis=1)
    ours = FlyingSquid(num_classes=count, moments=way).fit(votes).predict(votes)
    theirs = majority_vote(votes, count)
    assert (ours == truth)[covered].mean() > (theirs == truth)[covered].mean() + 0.03


def test_many_functions_take_drawn_pairs():
    case = Planted((0.9,) * 50 + (0.6,) * 50, (0.5,) * 100, (0.5, 0.5), rows=3000)
    votes, _ = case.draw()
    model = FlyingSquid(seed=1).fit(votes)
    np.testing.assert_allclose(model.accuracies_[:, 0], case.accuracies, atol=0.06)
    again = FlyingSquid(seed=1).fit(votes)
    np.testing.assert_array_equal(model.accuracies_, again.accuracies_)
    assert (FlyingSquid(seed=2).fit(votes).accuracies_ != model.accuracies_).any()


def test_functions_for_one_class_only_are_a_majority_vote():
    _, _, votes = load("youtube", "train")
    votes = np.array(votes)
    model = FlyingSquid().fit(votes)
    assert (model.accuracies_ == 0.99).all()
    np.testing.assert_array_equal(model.predict(votes), majority_vote(votes, 2))


def test_meeting_is_evidence_over_all_rows():
    _, truth, votes = load("trec", "train")
    votes = np.array(votes)
    covered = (votes >= 0).any(axis=1)
    right = [
        (FlyingSquid(num_classes=6, moments=way).fit(votes).predict(votes) == truth)[covered].mean()
        for way in WAYS
    ]
    assert right[1] > right[0] + 0.03


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", DEGENERATE)
def test_no_votes_lead_to_nan(case, way):
    votes, count = DEGENERATE[case]
    balance = np.arange(count) / max(1, np.arange(count).sum()) if count > 1 else np.ones(1)
    for given_balance in (None, balance):
        model = FlyingSquid(num_classes=count, class_balance=given_balance, moments=way).fit(votes)
        rows = np.vstack([votes, np.full((1, votes.shape[1]), NONE)])
        probabilities = model.predict_proba(rows)
        assert probabilities.shape == (len(rows), count)
        assert (probabilities >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_allclose(probabilities[-1], model.class_balance_, atol=1e-9)
        assert ((model.accuracies_ >= 0.5) & (model.accuracies_ <= 0.99)).all()


def test_an_estimator_of_scikit_learn():
    model = FlyingSquid(num_classes=3, class_balance=[0.2, 0.3, 0.5], moments="all-rows", seed=4)
    with pytest.raises(NotFittedError):
        model.predict(BY_HAND)
    model.fit(BY_HAND, y=np.zeros(3))  # ignored
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(BY_HAND), model.predict_proba(BY_HAND)
    )
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(BY_HAND)


def test_refusals():
    for accuracy in (0, 1, -0.5, float("nan")):
        with pytest.raises(ValueError, match=r"Expected `default_accuracy` to be in \(0, 1\), got"):
            FlyingSquid(default_accuracy=accuracy).fit(BY_HAND)
    with pytest.raises(ValueError, match=r"Expected `moments` to be one of .* did you mean 'all-r"):
        FlyingSquid(moments="all").fit(BY_HAND)


def test_the_balance_of_labels():
    assert balance_of(np.array([2, 2, 0, -1]), 4).tolist() == [1 / 3, 0, 2 / 3, 0]
    model = FlyingSquid(class_balance=balance_of([0, 0, 0, 1], 2)).fit(BY_HAND)
    assert model.class_balance_.tolist() == [0.75, 0.25]
    assert balance_of(np.array([0, 1], dtype=np.uint64), 2).tolist() == [0.5, 0.5]
    for labels in ([0.0, 1.0], [[0, 1]], ["ham"], []):
        with pytest.raises(ValueError, match="Expected `labels` to be a vector of class indices"):
            balance_of(labels, 2)
    with pytest.raises(ValueError, match="Expected `labels` to hold at least one class index, got"):
        balance_of([-1, -100], 2)
    with pytest.raises(
        ValueError,
        match=r"Expected `labels` to be in \[0, 1\], or negative for unknown, got 4 in row 2",
    ):
        balance_of([0, -1, 4], 2)

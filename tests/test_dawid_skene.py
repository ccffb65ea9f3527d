"""Dawid-Skene: against EM in plain loops, planted confusions, a real crowd, and the collapse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agra.label_models import majority_vote
from agra.label_models.dawid_skene import DawidSkene
from planted_votes import plant
from test_majority import vote_matrices
from text_sets import data_home


def plain_steps(votes, num_classes, steps, *, smoothing, abstain_counts):
    """EM one number at a time: posteriors, confusions and balance after some steps."""
    symbols = [*range(num_classes), -1] if abstain_counts else list(range(num_classes))
    functions = range(len(votes[0]))
    posteriors = []
    for row in votes:
        counts = [row.count(k) for k in range(num_classes)]
        total = sum(counts)
        posteriors.append([c / total if total else 1 / num_classes for c in counts])
    for _ in range(steps):
        confusions = []
        for f in functions:
            matrix = []
            for k in range(num_classes):
                expected = [smoothing] * len(symbols)
                for row, posterior in zip(votes, posteriors, strict=True):
                    if row[f] in symbols:
                        expected[symbols.index(row[f])] += posterior[k]
                matrix.append([e / sum(expected) for e in expected])
            confusions.append(matrix)
        mass = [1 / num_classes + sum(p[k] for p in posteriors) for k in range(num_classes)]
        balance = [m / sum(mass) for m in mass]
        posteriors, likelihood = [], 0.0
        for row in votes:
            joint = list(balance)
            for f in functions:
                if row[f] in symbols:
                    for k in range(num_classes):
                        joint[k] *= confusions[f][k][symbols.index(row[f])]
            likelihood += math.log(sum(joint))
            posteriors.append([j / sum(joint) for j in joint])
    prior = smoothing * sum(math.log(p) for m in confusions for line in m for p in line)
    prior += sum(math.log(b) for b in balance) / num_classes
    return posteriors, confusions, balance, likelihood + prior


@pytest.mark.parametrize("abstain_counts", [False, True])
@pytest.mark.parametrize(("num_classes", "smoothing"), [(2, 0.01), (3, 0.5), (4, 1.0)])
@pytest.mark.parametrize("steps", [1, 2, 10])
def test_steps_are_those_of_plain_loops(num_classes, smoothing, abstain_counts, steps):
    votes = np.random.default_rng(num_classes).integers(-1, num_classes, (40, 5))
    model = DawidSkene(
        num_classes=num_classes,
        smoothing=smoothing,
        abstain_counts=abstain_counts,
        max_iter=steps,
        tol=0,
    )
    with pytest.warns(UserWarning, match="gained more than `tol` after"):
        model.fit(votes)
    options = {"smoothing": smoothing, "abstain_counts": abstain_counts}
    *_, reached = plain_steps(votes.tolist(), num_classes, steps, **options)
    posteriors, confusions, balance, _ = plain_steps(
        votes.tolist(), num_classes, steps + 1, **options
    )
    assert model.objectives_[-1] * len(votes) == pytest.approx(reached, abs=1e-9)
    np.testing.assert_allclose(model.confusions_, confusions, atol=1e-12)
    np.testing.assert_allclose(model.class_balance_, balance, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(votes), posteriors, atol=1e-12)


@given(vote_matrices(), st.sampled_from([None, False, True]), st.sampled_from([0.01, 1.0]))
@settings(deadline=None, max_examples=60)
def test_what_is_maximised_never_falls(case, abstain_counts, smoothing):
    votes, num_classes = case
    model = DawidSkene(
        num_classes=num_classes, abstain_counts=abstain_counts, smoothing=smoothing, tol=1e-6
    ).fit(votes)
    assert (np.diff(model.objectives_) >= -1e-9).all()
    assert len(model.objectives_) == model.n_iter_


def test_planted_confusions_come_back():
    rng = np.random.default_rng(0)
    confusions = 0.5 * np.eye(3) + 0.5 * rng.dirichlet(np.ones(3), size=(8, 3))
    truth = rng.choice(3, size=20_000, p=[0.2, 0.3, 0.5])
    lots = rng.random((20_000, 8, 1))
    votes = (lots > confusions[np.arange(8), truth[:, None]].cumsum(axis=2)).sum(axis=2)
    votes[rng.random(votes.shape) < 0.4] = -1
    model = DawidSkene().fit(votes)
    assert not model.abstain_counts_
    np.testing.assert_allclose(model.confusions_, confusions, atol=0.03)
    np.testing.assert_allclose(model.class_balance_, [0.2, 0.3, 0.5], atol=0.02)
    right = (model.predict(votes) == truth).mean()
    assert right > (majority_vote(votes, 3) == truth).mean() + 0.01


@pytest.mark.parametrize("seed", range(3))
def test_unequal_annotators_are_told_apart(seed):
    votes, truth = plant(5000, [0.95, 0.9, 0.6, 0.55, 0.55], propensities=0.8, seed=seed)
    model = DawidSkene().fit(votes)
    assert (model.predict(votes) == truth).mean() > (majority_vote(votes, 2) == truth).mean()


def test_a_crowd_is_read_better_than_by_the_majority():
    with np.load(data_home() / "crowd" / "music_genre_amt.npz", allow_pickle=False) as crowd:
        votes, truth = crowd["answers"], crowd["y_train"]
    model = DawidSkene(num_classes=10).fit(votes)
    assert not model.abstain_counts_
    assert (majority_vote(votes, 10) == truth).mean() == pytest.approx(0.709, abs=0.001)
    assert (model.predict(votes) == truth).mean() == pytest.approx(0.746, abs=0.005)


def single_class_votes():
    rng = np.random.default_rng(0)
    truth = rng.choice(2, size=4000, p=[0.6, 0.4])
    target = np.array([1, 1, 1, 0, 0])
    chance = np.where(truth[:, None] == target, 0.5, 0.05)
    return np.where(rng.random((4000, 5)) < chance, target, -1), truth


def test_functions_of_one_class_say_something_by_abstaining():
    votes, truth = single_class_votes()
    model = DawidSkene().fit(votes)
    assert model.abstain_counts_
    assert model.confusions_.shape == (5, 2, 3)
    assert (model.predict(votes) == truth).mean() > (majority_vote(votes, 2) == truth).mean()
    np.testing.assert_allclose(model.confusions_[0], [[0, 0.05, 0.95], [0, 0.5, 0.5]], atol=0.03)


def test_without_abstaining_functions_of_one_class_collapse():
    votes, _ = single_class_votes()
    model = DawidSkene(abstain_counts=False).fit(votes)
    shares = model.predict_proba(votes)
    np.testing.assert_allclose(shares, np.tile(model.class_balance_, (4000, 1)), atol=0.01)


def test_a_given_balance_stays():
    votes, _ = plant(500, [0.9, 0.8, 0.7], balance=[0.2, 0.8])
    model = DawidSkene(class_balance=[0.25, 0.75]).fit(votes)
    assert model.class_balance_.tolist() == [0.25, 0.75]
    learned = DawidSkene().fit(votes).class_balance_
    np.testing.assert_allclose(learned, [0.2, 0.8], atol=0.05)


@pytest.mark.parametrize("smoothing", [0, -1, float("nan")])
def test_refusals(smoothing):
    with pytest.raises(ValueError, match="`smoothing` to be a number greater than 0, got"):
        DawidSkene(smoothing=smoothing).fit([[0, 1]])

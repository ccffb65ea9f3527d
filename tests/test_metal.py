"""MeTaL: snorkel's numbers, planted accuracies, its gradient, and refusals; and the overlaps."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import agra.label_models.overlaps as module
from agra.label_models.majority import majority_vote
from agra.label_models.metal import MeTaL, Objective
from agra.label_models.overlaps import add_up, overlap_counts
from planted_moments import DEGENERATE, NONE, RECORDED, Planted
from test_majority import vote_matrices
from text_sets import TEXT_SETS, load

RECORD = json.loads((Path(__file__).parent / "recorded" / "label_model.json").read_text("utf-8"))
VOTES = np.array([[0, 0, 1], [1, 1, 1], [0, 0, NONE], [1, 1, 1]])


@pytest.mark.parametrize("name", RECORDED)
def test_planted_votes_give_snorkels_numbers(name):
    case, expected = RECORDED[name], RECORD["planted"][name]
    votes, _ = case.draw()
    model = MeTaL(
        num_classes=len(case.balance), class_balance=case.balance, seed=RECORD["seed"]
    ).fit(votes)
    np.testing.assert_allclose(model.conditionals_, expected["conditionals"], atol=2e-6)
    np.testing.assert_allclose(
        model.predict_proba(votes[:20]), expected["probabilities"], atol=5e-6
    )


@pytest.mark.parametrize("name", [case.name for case in TEXT_SETS])
def test_real_votes_give_snorkels_numbers(name):
    expected = RECORD["real"][name]
    votes = np.array(load(name, "train")[2])
    model = MeTaL(num_classes=len(expected["clear rows"]), seed=RECORD["seed"]).fit(votes)
    probabilities = model.predict_proba(votes)
    likeliest = probabilities.max(axis=1)
    clear = (probabilities > likeliest[:, None] - 1e-3).sum(axis=1) == 1
    np.testing.assert_allclose(
        model.conditionals_.mean(axis=0), expected["mean conditionals"], atol=2e-6
    )
    np.testing.assert_allclose(
        probabilities.mean(axis=0), expected["mean probabilities"], atol=5e-6
    )
    assert likeliest.mean() == pytest.approx(expected["mean of the likeliest"], abs=5e-6)
    counts = np.bincount(probabilities[clear].argmax(axis=1), minlength=probabilities.shape[1])
    assert counts.tolist() == expected["clear rows"]


@pytest.mark.parametrize("balance", [(0.5, 0.5), (0.5, 0.3, 0.2), (0.25,) * 4])
def test_planted_accuracies_are_found_by_a_descent_that_is_long_enough(balance):
    count = len(balance)
    case = Planted((0.95, 0.9, 0.6, 0.55, 0.5, 0.5), (0.9,) * 6, balance, rows=20_000)
    votes, truth = case.draw()
    model = MeTaL(num_classes=count, class_balance=balance, epochs=3000).fit(votes)
    accuracies = np.diagonal(model.conditionals_, axis1=1, axis2=2) / 0.9
    np.testing.assert_allclose(accuracies @ balance, case.accuracies, atol=0.05)
    right = (model.predict(votes) == truth).mean()
    assert right > (majority_vote(votes, count) == truth).mean() + 0.03


@given(vote_matrices())
@settings(deadline=None)
def test_the_gradient_is_that_of_the_loss(case):
    votes, count = case
    shares = np.arange(1, count + 1) / np.arange(1, count + 1).sum()
    overlaps = overlap_counts(votes, count) / max(1, len(votes))
    mu = np.random.default_rng(0).random((len(overlaps), count))
    objective = Objective.of(overlaps, shares)
    ours, observed = torch.tensor(mu, requires_grad=True), torch.tensor(overlaps)
    balance = torch.tensor(shares)
    functions = torch.arange(len(overlaps)) // count
    pairs = functions[:, None] != functions
    plain = ((observed - ours @ balance.diag() @ ours.T)[pairs] ** 2).sum()
    plain = plain + ((ours @ balance - observed.diagonal()) ** 2).sum()
    plain.backward()
    assert objective.loss(mu) == pytest.approx(plain.item())
    np.testing.assert_allclose(objective.gradient(mu), ours.grad.numpy(), atol=1e-10)


def test_columns_are_told_apart_by_trust_alone():
    model = MeTaL(num_classes=4, class_balance=[0.2, 0.3, 0.3, 0.2]).fit(VOTES)
    agreement = np.array([[0, 0, 0, 9], [0, 0, 9, 0], [0, 9, 0, 0], [9, 0, 0, 0]])
    assert model._order(agreement).tolist() == [3, 2, 1, 0]
    model = MeTaL(num_classes=4, class_balance=[0.4, 0.3, 0.2, 0.1]).fit(VOTES)
    assert model._order(agreement).tolist() == [0, 1, 2, 3]  # shares that differ tell, too


def test_a_step_that_diverges_is_shortened():
    case = Planted((0.8,) * 300, (1,) * 300, (0.5, 0.5), rows=300)
    votes, truth = case.draw()
    model = MeTaL().fit(votes)
    objective = Objective.of(overlap_counts(votes, 2) / 300, model.class_balance_)
    start = model._start(objective.shares)
    assert np.isinf(model._steps(objective, start, model.learning_rate)).all()
    assert (model.predict(votes) == truth).all()
    assert abs(np.diagonal(model.conditionals_, axis1=1, axis2=2).mean() - 0.8) < 0.1


def test_one_seed_one_result():
    votes, _ = RECORDED["two classes"].draw()
    first, again, other = (MeTaL(seed=seed).fit(votes).conditionals_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("case", DEGENERATE)
def test_no_votes_lead_to_nan(case):
    votes, count = DEGENERATE[case]
    balance = np.arange(count) / max(1, np.arange(count).sum()) if count > 1 else np.ones(1)
    for given_balance in (None, balance):
        model = MeTaL(num_classes=count, class_balance=given_balance).fit(votes)
        rows = np.vstack([votes, np.full((1, votes.shape[1]), NONE)])
        probabilities = model.predict_proba(rows)
        assert probabilities.shape == (len(rows), count)
        assert (probabilities >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_allclose(probabilities[-1], model.class_balance_, atol=1e-9)
        assert ((model.conditionals_ > 0) & (model.conditionals_ < 1)).all()


def test_an_estimator_of_scikit_learn():
    model = MeTaL(num_classes=2, class_balance=[0.3, 0.7], initial_precision=0.8, epochs=10, seed=4)
    with pytest.raises(NotFittedError):
        model.predict(VOTES)
    model.fit(VOTES, y=np.zeros(3))  # ignored
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(VOTES), model.predict_proba(VOTES)
    )
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(VOTES)


def test_refusals():
    for precision in (0, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"Expected `initial_precision` to be in \(0, 1\], g"):
            MeTaL(initial_precision=precision).fit(VOTES)
    for epochs in (0, 2.5, "many"):
        with pytest.raises(ValueError, match="Expected `epochs` to be a whole number, 1 at least"):
            MeTaL(epochs=epochs).fit(VOTES)
    for rate in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="Expected `learning_rate` to be positive and finite"):
            MeTaL(learning_rate=rate).fit(VOTES)
    with pytest.raises(ValueError, match="Expected `class_balance` to be 2 shares that sum to one"):
        MeTaL(class_balance=[0.5, 0.6]).fit(VOTES)
    with pytest.raises(ValueError, match="of the 3 functions that were fitted, got 2 columns"):
        MeTaL().fit(VOTES).predict(VOTES[:, :2])


@pytest.mark.parametrize("cells", [1, 7, 2**22])
@given(case=vote_matrices())
@settings(deadline=None)
def test_overlaps_and_sums_are_those_of_plain_loops(cells, case):
    votes, count = case
    cast = np.zeros((len(votes), votes.shape[1], count))
    for row, function in zip(*(votes >= 0).nonzero(), strict=True):
        cast[row, function, votes[row, function]] = 1
    cast = cast.reshape(len(votes), votes.shape[1] * count)
    table = np.random.default_rng(0).random((cast.shape[1], count))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS", cells)
        np.testing.assert_array_equal(overlap_counts(votes, count), cast.T @ cast)
        np.testing.assert_allclose(add_up(votes, table), cast @ table)

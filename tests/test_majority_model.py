"""The majority as a model: the same as the functions; what all label models do and refuse.

scikit-learn's estimator checks are made for numbers in X and do not apply to votes: what they would
look at (clone, parameters, pickle, fitted or not, refusals) is looked at here by hand.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from agra.label_models import majority_vote, vote_shares
from agra.label_models.data_programming import DataProgramming
from agra.label_models.dawid_skene import DawidSkene
from agra.label_models.majority_model import MajorityVote
from planted_votes import DEGENERATE, plant
from test_majority import vote_matrices

MODELS = {
    "majority": MajorityVote(),
    "data-programming": DataProgramming(),
    "data-programming, weak prior": DataProgramming(
        prior_votes=1e-9, learn_balance=True, max_iter=20_000
    ),
    "dawid-skene": DawidSkene(),
    "dawid-skene, abstaining": DawidSkene(abstain_counts=True, smoothing=1e-9),
    "dawid-skene, balanced": DawidSkene(abstain_counts=False, smoothing=1e-300),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@given(vote_matrices())
@settings(deadline=None)
def test_the_model_is_the_functions(case):
    votes, num_classes = case
    model = MajorityVote(num_classes=num_classes).fit(votes)
    shares = vote_shares(votes, num_classes)
    assert (model.predict(votes) == majority_vote(votes, num_classes)).all()
    assert (model.predict_proba(votes) == shares).all()
    logs = np.exp(model._log_joint(votes))
    np.testing.assert_allclose(logs / logs.sum(axis=1, keepdims=True), shares, atol=1e-12)
    balance = shares.mean(axis=0) if len(votes) else np.full(num_classes, 1 / num_classes)
    np.testing.assert_allclose(model.class_balance_, balance)


@each_model
@pytest.mark.parametrize("votes", DEGENERATE.values(), ids=DEGENERATE)
def test_votes_of_no_use_give_finite_probabilities(model, votes):
    model = clone(model).fit(votes)
    unseen = np.random.default_rng(0).integers(-1, len(model.classes_), (50, model.n_features_in_))
    for rows in (votes, unseen, unseen[:1]):
        shares = model.predict_proba(rows)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert (shares >= 0).all()
        assert np.isin(model.predict(rows), model.classes_).all()
    for name, learned in vars(model).items():
        if name.endswith("_"):
            assert np.isfinite(learned).all(), name


@pytest.mark.parametrize(
    "model", [DataProgramming(), DawidSkene(), DawidSkene(abstain_counts=True)], ids=repr
)
def test_classes_without_a_share_are_never_predicted(model):
    model = clone(model).set_params(class_balance=[0.5, 0.5, 0.0], num_classes=3)
    shares = model.fit([[0, 1], [2, 2], [1, 1]]).predict_proba([[2, 2], [-1, 2]])
    assert (shares[:, 2] == 0).all()
    assert model.class_balance_.tolist() == [0.5, 0.5, 0.0]


@each_model
def test_models_are_estimators(model):
    votes, _ = plant(200, [0.9, 0.7, 0.8, 0.6], balance=[0.3, 0.3, 0.4], propensities=0.8)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert type(model).__name__ in repr(fresh)
    with pytest.raises(NotFittedError):
        fresh.predict(votes)
    shares = fresh.fit(votes, None).predict_proba(votes)
    assert fresh.n_features_in_ == 4
    assert fresh.classes_.tolist() == [0, 1, 2]
    assert (clone(fresh).fit(votes.tolist()).predict_proba(votes) == shares).all()
    assert (pickle.loads(pickle.dumps(fresh)).predict_proba(votes) == shares).all()
    assert (fresh.predict_proba(votes[::-1])[::-1] == shares).all()
    assert fresh.fit([[0, 1]]).class_balance_.shape == (2,), "nothing of the first fit stays"


@each_model
def test_models_refuse_what_are_no_votes_of_theirs(model):
    fitted = clone(model).fit([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match="Expected `votes` of the 2 functions that were fitted"):
        fitted.predict([[0, 1, 1]])
    with pytest.raises(ValueError, match=r"class indices in \[0, 1\].*got 2 in row 0, function 1"):
        fitted.predict_proba([[0, 2]])
    with pytest.raises(ValueError, match="to be a matrix of whole numbers"):
        clone(model).fit([[0.0, 1.0]])
    with pytest.raises(ValueError, match=r"class indices in \[0, 1\].*got 2 in row 0, function 0"):
        clone(model).set_params(num_classes=2).fit([[2, 1]])
    if "class_balance" in model.get_params():
        for balance in ([0.5, 0.6], [1.5, -0.5], [1.0]):
            with pytest.raises(ValueError, match="`class_balance` to be 2 shares that sum to one"):
                clone(model).set_params(class_balance=balance).fit([[0, 1]])

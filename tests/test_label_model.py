"""What every label model refuses, and where it takes the number of classes from."""

import numpy as np
import pytest

from agra.label_models import DataProgramming, DawidSkene, FlyingSquid, MajorityVote, MeTaL

MODELS = [MajorityVote, DataProgramming, DawidSkene, FlyingSquid, MeTaL]
BALANCED = [model for model in MODELS if model is not MajorityVote]
VOTES = np.array([[0, 1, -1], [1, 1, 1], [0, -1, 0], [-1, -1, -1]])


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([[0, 1], [1]], "Expected `votes` to have as many votes in every row"),
        ([["a", "b"]], "Expected `votes` to be a matrix of whole numbers"),
        ([[0.5, 1.0]], "Expected `votes` to be a matrix of whole numbers"),
        ([[None, 1]], "Expected `votes` to be a matrix of whole numbers"),
        ([0, 1], "Expected `votes` to be a matrix of whole numbers"),
        ([[0, -2]], "Expected `votes` to be class indices in"),
    ],
)
def test_votes_that_are_none(kind, votes, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(votes)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("count", [0, -1, 2.0, "two"])
def test_a_number_of_classes_that_is_none(kind, count):
    with pytest.raises(
        ValueError, match="Expected `num_classes` to be None or a whole number from"
    ):
        kind(num_classes=count).fit(VOTES)


@pytest.mark.parametrize("kind", BALANCED)
@pytest.mark.parametrize("balance", ["x", [np.nan, np.nan], [0.5, 0.6], [-1, 2], [[0.5, 0.5]]])
def test_a_balance_that_is_none(kind, balance):
    with pytest.raises(ValueError, match=r"Expected `class_balance` to be \d shares that sum to"):
        kind(class_balance=balance).fit(VOTES)


@pytest.mark.parametrize("kind", MODELS)
def test_the_number_of_classes_is_said_or_found(kind):
    assert kind().fit(VOTES).classes_.tolist() == [0, 1]
    assert kind(num_classes=4).fit(VOTES).predict_proba(VOTES).shape == (4, 4)
    assert kind().fit(VOTES * 0).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("kind", BALANCED)
def test_a_balance_says_how_many_classes_there_are(kind):
    model = kind(class_balance=[0.5, 0.25, 0.25]).fit(VOTES)
    assert model.class_balance_.tolist() == [0.5, 0.25, 0.25]
    assert np.isfinite(model.predict_proba(VOTES)).all()

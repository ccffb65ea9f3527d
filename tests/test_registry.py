"""Methods by name: what they learn from, what can be set, and the paper's grid."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from agra import NoisyDataset
from agra.baselines import CORES2, METHODS, Cleanlab, PlainClassifier, find_method
from agra.estimators import AgraClassifier
from agra.label_models import majority_vote, vote_shares
from agra.label_models.model import LabelModel

RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


class Shares(LabelModel):
    """A label model of vote shares, with settings of several kinds."""

    def __init__(self, num_classes=None, class_balance=None, power=1.0, epochs=1, seed=None):
        self.num_classes = num_classes
        self.class_balance = class_balance
        self.power = power
        self.epochs = epochs
        self.seed = seed

    def _fit(self, votes):
        self.seen_ = votes

    def _log_joint(self, votes):
        return self.power * np.log(vote_shares(votes, len(self.classes_)) + 1e-9)


def of_shares(name="Shares"):
    return replace(
        find_method("majority-vote"),
        name="shares",
        label_model=f"{__name__}.{name}",
        label_grid={"epochs": (5, 10), "batch_size": (32, 64)},
    )


def splits(size=300, kind=np.asarray):
    """Three classes apart from each other; votes that are right two times in three."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, 2 * size)
    rows = kind(np.eye(3)[truth] * 3 + generator.normal(size=(2 * size, 3)))
    votes = np.where(
        generator.random((2 * size, 5)) < 0.6,
        truth[:, None],
        generator.integers(0, 3, (2 * size, 5)),
    )
    votes[generator.random(votes.shape) < 0.4] = -1
    votes[:6] = -1
    whole = NoisyDataset(
        inputs=rows,
        labels=majority_vote(votes, 3),
        classes=("a", "b", "c"),
        true_labels=truth,
        votes=votes,
        name="planted",
    )
    return whole[:size], whole[size:].replace(split="valid")


NO_VOTES = [name for name, method in METHODS.items() if method.label_model is None]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", NO_VOTES)
def test_methods_without_votes(name, kind):
    train, valid = splits(kind=kind)
    method = find_method(name)
    settings = {key: values[0] for key, values in method.grid.items()} | {"learning_rate": 0.01}
    model = method.fit(train, valid, settings, 3)
    assert model.score(valid.features(), valid.true_labels) > 0.8
    labels = method.label(train)
    truth = train.true_labels if name == "gold" else train.labels
    np.testing.assert_array_equal(labels, truth)
    again = method.fit(train, valid, settings, 3)
    np.testing.assert_array_equal(
        again.predict_proba(valid.features()), model.predict_proba(valid.features())
    )


def test_each_makes_its_classifier():
    train, valid = splits(60)
    kinds = {name: type(find_method(name).fit(train, valid)) for name in NO_VOTES}
    assert kinds == {
        "gold": AgraClassifier,
        "no-denoising": AgraClassifier,
        "cores2": CORES2,
        "cleanlab": Cleanlab,
        "agra": AgraClassifier,
    }
    assert find_method("agra").fit(train, valid).ledger_ is not None
    assert find_method("gold").fit(train, valid).ledger_ is None
    pruned = find_method("cleanlab").fit(train, valid, {"folds": 3, "epochs": 2}, 9)
    assert (pruned.folds, pruned.random_state, pruned.classifier.random_state) == (3, 9, 9)
    assert pruned.classifier.epochs == 2


def test_votes_become_probabilities_or_labels():
    train, valid = splits()
    method = of_shares()
    uncovered = (train.votes < 0).all(axis=1)
    soft = method.label(train)
    shares = vote_shares(train.votes, 3)
    np.testing.assert_allclose(soft[~uncovered], shares[~uncovered], atol=1e-6)
    assert np.isnan(soft[uncovered]).all()
    hard = method.label(train, {"soft": False})
    np.testing.assert_array_equal(hard[~uncovered], majority_vote(train.votes, 3)[~uncovered])
    assert (hard[uncovered] == -1).all()
    np.testing.assert_allclose(method.label(train, {"uncovered": True})[uncovered], 1 / 3)
    sharper = method.label(train, {"label_model__power": 9.0})
    assert sharper[~uncovered].max(axis=1).mean() > soft[~uncovered].max(axis=1).mean()
    for settings, rows in (({}, (~uncovered).sum()), ({"uncovered": True}, len(train))):
        for soft in (True, False):
            model = method.fit(train, valid, {"soft": soft, **settings}, 0)
            assert isinstance(model, PlainClassifier)
            assert model.history_[-1].kept == rows
            assert model.score(valid.features(), valid.true_labels) > 0.9


def test_label_models_get_the_seed_and_all_classes():
    train, _ = splits()
    seen = []

    class Noted(Shares):
        def _fit(self, votes):
            seen.append((self.num_classes, self.seed))

    globals()["Noted"] = Noted
    method = of_shares("Noted")
    method.label(train, seed=7)
    method.label(train, {"label_model__seed": 1}, seed=7)
    assert seen == [(3, 7), (3, 1)]


def test_rows_without_labels_are_left_out():
    train, valid = splits()
    labels = train.labels.copy()
    labels[::3] = -100
    there = np.flatnonzero(labels >= 0)
    gappy = find_method("no-denoising").fit(train.replace(labels=labels), valid)
    alone = find_method("no-denoising").fit(train[there], valid)
    np.testing.assert_array_equal(
        gappy.predict_proba(valid.features()), alone.predict_proba(valid.features())
    )


def test_validation_leaves_out_what_training_has_not_seen():
    train, valid = splits()
    some = train[np.flatnonzero(train.labels != 2)]
    model = find_method("no-denoising").fit(some, valid)
    seen = valid[np.flatnonzero(valid.true_labels != 2)]
    assert model.history_[model.best_epoch_].score == model.score(seen.features(), seen.true_labels)
    given_only = find_method("no-denoising").fit(train, valid.replace(true_labels=None))
    assert given_only.history_[given_only.best_epoch_].score == given_only.score(
        valid.features(), valid.labels
    )
    with pytest.raises(ValueError, match="Expected `valid` to hold labels of the classes that"):
        find_method("gold").fit(some[:50], valid[np.flatnonzero(valid.true_labels == 2)][:0])


def test_the_grid_is_table_six():
    plain = {"learning_rate": RATES, "batch_size": (32, 64, 128), "weight_decay": RATES}
    wide = {**plain, "batch_size": (32, 128, 512)}
    assert find_method("agra").search_space() == find_method("cores2").search_space() == wide
    assert find_method("no-denoising").search_space() == plain
    pruned = {**wide, "folds": (2, 5, 7, 9, 12), "weight_decay": RATES[:3]}
    assert find_method("cleanlab").search_space() == pruned
    for name in ("data-programming", "metal", "flying-squid"):
        assert find_method(name).grid == plain
    assert find_method("data-programming").label_grid["epochs"] == (5, 10, 50, 100, 200)
    assert of_shares().search_space() == {**plain, "label_model__epochs": (5, 10)}


@pytest.mark.parametrize("name", [name for name in METHODS if name not in NO_VOTES])
def test_registered_label_models_are_where_they_should_be(name):
    method = find_method(name)
    module, _, kind = method.label_model.rpartition(".")
    pytest.importorskip(module)
    assert issubclass(getattr(importlib.import_module(module), kind), LabelModel)
    train, valid = splits()
    settings = {key: values[0] for key, values in method.search_space().items()}
    model = method.fit(train, valid, {**settings, "learning_rate": 0.01})
    assert model.score(valid.features(), valid.true_labels) > 0.8


def test_names_and_titles():
    assert [method.title for method in METHODS.values() if method.learns_from != "votes"] == [
        "Gold",
        "No Denoising",
        "CORES²",
        "Cleanlab",
        "AGRA",
    ]
    assert all(name == method.name for name, method in METHODS.items())
    with pytest.raises(ValueError, match=r"`method` to be one of .*did you mean 'cleanlab'"):
        find_method("clean-lab")


def test_refusals():
    train, valid = splits()
    with pytest.raises(ValueError, match=r"`settings of gold` to be one of .*mean 'batch_size'"):
        find_method("gold").fit(train, valid, {"batchsize": 3})
    with pytest.raises(ValueError, match="settings of agra"):
        find_method("agra").fit(train, valid, {"judging": False})
    with pytest.raises(ValueError, match="Expected a data set with true labels for 'gold', got no"):
        find_method("gold").fit(train.replace(true_labels=None), valid)
    with pytest.raises(ValueError, match="with votes for 'shares', got none in planted"):
        of_shares().fit(train.replace(votes=None, functions=()), valid)
    several = NoisyDataset(inputs=np.eye(2), labels=np.eye(2), classes=("a", "b"))
    with pytest.raises(ValueError, match="Expected one label per sample for 'agra', got several"):
        find_method("agra").fit(several, valid)
    texts = NoisyDataset(inputs=["a", "b"], labels=[0, 1], classes=("a", "b"))
    with pytest.raises(TypeError, match="Expected numbers as inputs, got texts"):
        find_method("agra").fit(texts, valid)

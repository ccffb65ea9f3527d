"""Cleanlab: what it flags is left out, by folds that lose no class."""

import importlib

import numpy as np
import pandas as pd
import pytest
from cleanlab.filter import find_label_issues
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from agra import AgraClassifier
from agra.baselines import Cleanlab
from agra.baselines.pruning import FILTERS, assign_folds


@parametrize_with_checks([Cleanlab(folds=2, random_state=0)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def digits(size=600):
    x, y = load_digits(return_X_y=True)
    x, y = x[:size] / 16, y[:size]
    given = y.copy()
    given[::5] = (given[::5] + 1) % 10
    return x, given, y


def loop_of_folds(x, given, folds, model):
    found = np.empty((len(x), 10))
    for fold in sorted(set(folds.tolist())):
        held = [row for row in range(len(x)) if folds[row] == fold]
        rest = [row for row in range(len(x)) if folds[row] != fold]
        found[held] = clone(model).fit(x[rest], given[rest]).predict_proba(x[held])
    return found


@pytest.mark.parametrize("filter_by", FILTERS)
def test_keeps_what_cleanlab_does_not_flag(filter_by):
    x, given, y = digits()
    inner = KNeighborsClassifier(5)
    model = Cleanlab(inner, folds=4, filter_by=filter_by, random_state=3).fit(x, given)
    folds = assign_folds(given, 4, np.random.RandomState(3))
    flagged = find_label_issues(
        given, loop_of_folds(x, given, folds, inner), filter_by=filter_by, n_jobs=1
    )
    np.testing.assert_array_equal(model.sample_kept_, ~flagged)
    expected = clone(inner).fit(x[~flagged], given[~flagged])
    np.testing.assert_array_equal(model.predict_proba(x), expected.predict_proba(x))
    wrong = given != y
    assert model.sample_kept_[wrong].mean() < model.sample_kept_[~wrong].mean() - 0.4


def test_every_filter_of_the_package_is_offered():
    signature_text = find_label_issues.__doc__.split("filter_by :")[1].split("}")[0]
    assert sorted(name.strip(" '{") for name in signature_text.split(",")) == list(FILTERS)


def test_better_than_plain_training_on_wrong_labels():
    x, given, y = digits(1797)
    plain = AgraClassifier(judging=False, random_state=0).fit(x[:1200], given[:1200])
    pruned = Cleanlab(random_state=0).fit(x[:1200], given[:1200])
    assert pruned.score(x[1200:], y[1200:]) > plain.score(x[1200:], y[1200:])


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, pd.DataFrame])
def test_features_of_any_kind_keep_the_same(kind):
    x, given, _ = digits(300)
    names = [f"pixel {place}" for place in range(64)]
    rows = pd.DataFrame(x, columns=names) if kind is pd.DataFrame else kind(x)
    expected = Cleanlab(folds=2, random_state=0).fit(x, given)
    found = Cleanlab(folds=2, random_state=0).fit(rows, given)
    np.testing.assert_array_equal(found.sample_kept_, expected.sample_kept_)
    np.testing.assert_allclose(found.predict_proba(rows), expected.predict_proba(x), rtol=1e-4)
    if kind is pd.DataFrame:
        Cleanlab(folds=2, random_state=0).fit(rows, given, validation=(rows, given))
        assert found.feature_names_in_.tolist() == names
        with pytest.raises(ValueError, match="feature names should match"):
            found.predict(rows[names[::-1]])


def test_folds_lose_no_class():
    generator = np.random.default_rng(0)
    for size, folds in ((7, 2), (20, 5), (40, 12)):
        codes = np.concatenate([generator.integers(0, 4, size), np.arange(6), [0, 1, 2, 3]])
        found = assign_folds(codes, folds, np.random.RandomState(0))
        alone = np.bincount(codes)[codes] == 1
        np.testing.assert_array_equal(found == -1, alone)
        for fold in range(folds):
            assert set(codes[found != fold]) == set(range(6))
            per_class = np.bincount(codes[found == fold], minlength=6)
            even = np.bincount(codes) / folds
            assert (np.abs(per_class - even)[np.bincount(codes) > 1] <= 1).all()


def test_rare_classes_stay():
    x, given, _ = digits(200)
    given = given.copy()
    given[:1], given[1:3] = 20, 21  # one of one class, two of another that nothing else is like
    model = Cleanlab(folds=5, filter_by="predicted_neq_given", random_state=0).fit(x, given)
    assert model.sample_kept_[:3].tolist() == [1, 1, 1]
    assert model.classes_.tolist() == [*range(10), 20, 21]
    assert model.predict_proba(x).shape == (200, 12)


def test_missing_labels_are_not_learned_from():
    x, given, _ = digits(300)
    labels = given.astype(float)
    labels[::3] = np.nan
    there = ~np.isnan(labels)
    model = Cleanlab(folds=2, random_state=0).fit(x, labels)
    alone = Cleanlab(folds=2, random_state=0).fit(x[there], labels[there])
    assert np.isnan(model.sample_kept_[~there]).all()
    np.testing.assert_array_equal(model.sample_kept_[there], alone.sample_kept_)
    np.testing.assert_array_equal(model.predict_proba(x), alone.predict_proba(x))


def test_names_of_classes_and_nested_settings():
    x, given, _ = digits(300)
    names = np.array(list("abcdefghij"))
    model = Cleanlab(AgraClassifier(judging=False), folds=2, random_state=0)
    model.set_params(classifier__epochs=3, classifier__random_state=0)
    model.fit(x, names[given], validation=(x[:50], names[given[:50]]))
    assert model.classes_.tolist() == list(names)
    assert len(model.classifier_.history_) == 3
    assert all(epoch.score is not None for epoch in model.classifier_.history_)
    assert model.decision_function(x).shape == (300, 10)
    assert not hasattr(Cleanlab(KNeighborsClassifier()), "decision_function")


def test_the_random_state_decides_everything():
    x, given, _ = digits(300)
    first, again, other = (Cleanlab(folds=2, random_state=s).fit(x, given) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.predict_proba(x), again.predict_proba(x))
    assert (first.sample_kept_ != other.sample_kept_).any()


def test_refusals():
    x, given, _ = digits(50)
    with pytest.raises(ValueError, match="Expected `folds` to be a whole number of 2 up, got 1"):
        Cleanlab(folds=1).fit(x, given)
    with pytest.raises(ValueError, match=r"`filter_by` to be one of .*did you mean 'both'"):
        Cleanlab(filter_by="boht").fit(x, given)
    with pytest.raises(ValueError, match="Expected `classifier` to have `predict_proba`, which"):
        Cleanlab(LinearSVC()).fit(x, given)
    with pytest.raises(ValueError, match="Expected `validation` to be None with a classifier"):
        Cleanlab(LogisticRegression()).fit(x, given, validation=(x, given))
    with pytest.raises(ValueError, match="at least 2 classes, with labels, got 1 class"):
        Cleanlab().fit(x, np.zeros(50))
    with pytest.raises(ValueError, match="Cleanlab requires y to be passed, but the target y"):
        Cleanlab().fit(x, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Cleanlab().fit(x, given[:40])


def test_a_missing_package_is_named_before_any_work(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    x, given, _ = digits(50)
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"run pip install 'agra\[cleanlab\]'"):
        Cleanlab().fit(x, given)

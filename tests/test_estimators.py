"""The scikit-learn door: what estimators must do to be at home in its tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from agra import IGNORE_LABEL, AgraClassifier, AgraMultilabelClassifier
from agra.estimators.targets import class_codes


class OneOfSeveral(AgraMultilabelClassifier):
    """Several labels, of which every sample has just one: what scikit-learn's checks pass in."""

    def _targets(self, y, classes=None):
        classes, codes = class_codes(y, classes)
        if (codes < 0).any():
            raise ValueError("Input y contains NaN.")
        rows = torch.zeros(len(codes), len(classes))
        return classes, rows.scatter_(1, codes.unsqueeze(1), 1.0)

    def _announced(self, classes):
        return np.unique(classes)

    def predict(self, X):
        best = self._outputs(X).argmax(axis=1)
        return self.classes_[best]

    def decision_function(self, X):
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict_proba(self, X):
        shares = super().predict_proba(X)
        return shares / shares.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = False
        tags.target_tags.single_output = True
        return tags


SINGLE = "float32: equal to 2e-6 (see the test on weights), where the check wants 1e-7"
FEW_STEPS = "fifty updates do not get as far as the check wants; two hundred do"


def exceptions(estimator):
    known = {
        "check_sample_weight_equivalence_on_dense_data": SINGLE,
        "check_sample_weight_equivalence_on_sparse_data": SINGLE,
    }
    if estimator.epochs == "auto":
        known["check_class_weight_classifiers"] = FEW_STEPS
    return known


@parametrize_with_checks(
    [
        AgraClassifier(random_state=0),
        AgraClassifier(judging=False, epochs=100, learning_rate=0.01, random_state=0),
        OneOfSeveral(random_state=0),
    ],
    expected_failed_checks=exceptions,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def digits(noise=0.3, seed=0):
    x, y = load_digits(return_X_y=True)
    generator = np.random.default_rng(seed)
    given, wrong = y.copy(), generator.permutation(len(y))[: int(noise * len(y))]
    given[wrong] = (given[wrong] + generator.integers(1, 10, len(wrong))) % 10
    return x / 16, given, y


def test_better_than_plain_training_on_wrong_labels():
    x, given, y = digits(0.4)
    train, test = slice(1200), slice(1200, None)
    settings = {"criterion": "f1", "comparison_size": 512, "epochs": 30, "random_state": 0}
    judged = AgraClassifier(**settings).fit(x[train], given[train])
    plain = AgraClassifier(judging=False, **settings).fit(x[train], given[train])
    assert judged.score(x[test], y[test]) > plain.score(x[test], y[test]) + 0.01
    assert judged.ledger_.totals["judged"].sum() == 30 * 1200
    assert plain.ledger_ is None


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array, pd.DataFrame])
def test_features_of_any_kind_give_the_same(kind):
    x, given, _ = digits()
    expected = AgraClassifier(random_state=0, epochs=2).fit(x, given)
    found = AgraClassifier(random_state=0, epochs=2).fit(kind(x), given)
    np.testing.assert_allclose(
        found.predict_proba(kind(x)), expected.predict_proba(x), rtol=1e-4, atol=1e-6
    )


def test_untidy_sparse_matrices():
    x, given, _ = digits()
    tidy = sparse.csr_matrix(x)
    untidy = sparse.coo_matrix(
        (np.tile(tidy.tocoo().data / 2, 2), [np.tile(part, 2) for part in tidy.nonzero()]),
        shape=tidy.shape,
    ).tocsr()
    doubled = sparse.csr_matrix(
        (np.repeat(tidy.data / 2, 2), np.repeat(tidy.indices, 2).astype(np.int64), 2 * tidy.indptr),
        shape=tidy.shape,
    )
    shuffled = tidy.copy()
    for row in range(shuffled.shape[0]):
        part = slice(shuffled.indptr[row], shuffled.indptr[row + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1]
        shuffled.data[part] = shuffled.data[part][::-1]
    shuffled.has_sorted_indices = False
    before = [part.copy() for part in (doubled.data, doubled.indices, doubled.indptr)]
    expected = AgraClassifier(random_state=0, epochs=2).fit(tidy, given).predict_proba(tidy)
    for matrix in (untidy, doubled, shuffled):
        found = AgraClassifier(random_state=0, epochs=2).fit(matrix, given).predict_proba(matrix)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    for part, old in zip((doubled.data, doubled.indices, doubled.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_constant_and_empty_columns_and_rows():
    x, given, _ = digits()
    x[:, 3], x[:, 4], x[::7] = 0, 1, 0
    model = AgraClassifier(random_state=0, epochs=3).fit(sparse.csr_matrix(x), given)
    assert np.isfinite(model.predict_proba(x)).all()
    quality = model.label_quality_
    assert ((quality >= 0) & (quality <= 1)).all()


def test_huge_and_tiny_features_stay_finite():
    x, given, _ = digits()
    for scale in (1e10, 1e-30):
        model = AgraClassifier(random_state=0, epochs=2).fit(x * scale, given)
        assert np.isfinite(model.predict_proba(x * scale)).all()
    with pytest.raises(ValueError, match="Expected finite gradients, got NaN or infinity"):
        AgraClassifier().fit(x * 1e30, given)
    with pytest.raises(ValueError, match="Input X contains infinity or a value too large for dtyp"):
        AgraClassifier().fit(x * 1e60, given)


def test_long_rows_get_short_steps():
    x, given, _ = digits()
    assert AgraClassifier(epochs=1).fit(x, given).learning_rate_ == 0.01
    assert AgraClassifier(epochs=1).fit(100 * x, given).learning_rate_ < 0.001
    assert AgraClassifier(epochs=1, learning_rate=0.5).fit(100 * x, given).learning_rate_ == 0.5


def test_pipeline_search_and_cross_validation():
    texts = [f"{word} text number {i}" for i in range(60) for word in ("good", "bad")]
    labels = ["yes", "no"] * 60
    pipeline = make_pipeline(TfidfVectorizer(), AgraClassifier(random_state=0))
    assert cross_val_score(pipeline, texts, labels, cv=3).mean() > 0.9
    grid = {"agraclassifier__criterion": ["f1", "cross-entropy"], "agraclassifier__epochs": [1, 5]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(texts, labels)
    assert search.predict(["a good one"]).tolist() == ["yes"]
    assert len(pipeline.fit(texts, labels)[-1].find_label_issues()) == 120


def test_feature_names_and_clone():
    x, given, _ = digits()
    frame = pd.DataFrame(x, columns=[f"pixel {i}" for i in range(64)])
    model = AgraClassifier(random_state=0, epochs=1).fit(frame, given)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"pixel 0": "other"}))
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "model_")
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(model))
    scaled.fit(frame, given)
    assert scaled[-1].feature_names_in_.tolist() == list(frame.columns)


def test_pickle_keeps_everything():
    x, given, _ = digits()
    model = AgraClassifier(random_state=0, epochs=2).fit(x, given)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_proba(x), model.predict_proba(x))
    pd.testing.assert_frame_equal(twin.find_label_issues(), model.find_label_issues())


@pytest.mark.parametrize(
    "names",
    [
        list("abcdefghij"),
        [f"{i}" for i in range(10)],
        list(range(5, 15)),
        [(i, "x") for i in range(10)],
    ],
)
def test_labels_of_any_kind(names):
    x, given, _ = digits()
    labels = [names[k] for k in given]
    model = AgraClassifier(random_state=0, epochs=2).fit(x, labels)
    assert model.classes_.tolist() == sorted(names)
    assert set(model.predict(x).tolist()) <= set(names)


def test_labels_that_have_no_order():
    x, given, _ = digits()
    labels = np.array([f"{k}" if k < 5 else int(k) for k in given], dtype=object)
    model = AgraClassifier(random_state=0, epochs=1).fit(x, labels)
    assert set(model.classes_.tolist()) == set(labels.tolist())


def test_missing_labels_teach_nothing():
    x, given, _ = digits()
    for gap in (np.nan, None, pd.NA):
        labels = pd.Series(given, dtype=object)
        labels[::3] = gap
        kept = np.arange(len(given)) % 3 != 0
        model = AgraClassifier(random_state=0, epochs=2).fit(x, labels)
        alone = AgraClassifier(random_state=0, epochs=2).fit(x[kept], given[kept])
        np.testing.assert_array_equal(model.predict_proba(x), alone.predict_proba(x))
        issues = model.find_label_issues()
        assert issues["given_label"].isna().tolist() == (~kept).tolist()
        assert issues["label_quality"].isna().tolist() == (~kept).tolist()
        assert not issues["is_label_issue"][~kept].any()
        assert issues["predicted_label"].notna().all()


def test_missing_labels_may_be_given():
    x, given, _ = digits(0.0)
    labels = given.astype(float)
    labels[::2] = np.nan
    model = AgraClassifier(
        alternative_label="any", random_state=0, learning_rate=0.002, epochs=5
    ).fit(StandardScaler().fit_transform(x), labels)
    totals = model.ledger_.totals
    assert totals["relabelled"][::2].sum() > 0
    assert totals["kept"][::2].sum() == 0


def test_an_alternative_label_by_its_name():
    x, given, _ = digits()
    labels = np.array(list("abcdefghij"))[given]
    model = AgraClassifier(alternative_label="c", random_state=0, epochs=2).fit(x, labels)
    new = model.ledger_.totals["new_label"]
    assert set(new.unique().tolist()) == {-1, 2}
    with pytest.raises(ValueError, match="Expected `alternative_label` to be one of the classes"):
        AgraClassifier(alternative_label="z").fit(x, labels)


def test_weights_stand_for_repetitions_and_nothing_for_absence():
    generator = np.random.default_rng(0)
    x, given = generator.normal(size=(100, 20)), generator.integers(0, 3, 100)
    weights = generator.integers(0, 4, 100)
    settings = {"batch_size": 1000, "learning_rate": 0.01, "random_state": 0, "judging": False}
    weighted = AgraClassifier(**settings).fit(x, given, sample_weight=weights)
    repeated = AgraClassifier(**settings).fit(np.repeat(x, weights, 0), np.repeat(given, weights))
    np.testing.assert_allclose(
        weighted.predict_proba(x), repeated.predict_proba(x), rtol=2e-6, atol=1e-7
    )
    judged = AgraClassifier(random_state=0).fit(x, given, sample_weight=weights > 0)
    without = AgraClassifier(random_state=0).fit(x[weights > 0], given[weights > 0])
    np.testing.assert_array_equal(judged.predict_proba(x), without.predict_proba(x))


def test_class_weights_shift_predictions():
    x, given, _ = digits()
    labels = given > 4
    plain = AgraClassifier(random_state=0).fit(x, labels).predict(x).mean()
    heavy = AgraClassifier(random_state=0, class_weight={True: 20}).fit(x, labels)
    assert heavy.predict(x).mean() > plain + 0.05
    AgraClassifier(random_state=0, class_weight="balanced", epochs=1).fit(x, labels)


def test_validation_keeps_the_best_epoch():
    x, given, y = digits()
    held_out = x[1200:], y[1200:]
    model = AgraClassifier(random_state=0, epochs=8, learning_rate=0.3)
    model.fit(x[:1200], given[:1200], validation=held_out)
    scores = [epoch.score for epoch in model.history_]
    assert model.score(*held_out) == max(scores)
    assert model.best_epoch_ == max(e for e in range(8) if scores[e] == max(scores))
    last = clone(model).set_params(selection="last")
    last.fit(x[:1200], given[:1200], validation=held_out)
    assert last.score(*held_out) == scores[-1] == last.history_[-1].score
    assert last.best_epoch_ == 7
    stopped = clone(model).set_params(patience=1, epochs=50, scoring="f1_macro")
    assert stopped.fit(x[:1200], given[:1200], validation=held_out).n_iter_ < 50


def test_an_interrupted_fit_keeps_what_it_learned():
    x, given, y = digits()
    seen = []

    def scoring(model, features, truth):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return 0.0

    model = AgraClassifier(random_state=0, scoring=scoring)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, given, validation=(x, y))
    assert model.n_iter_ == 2
    assert model.score(x, y) > 0.5
    assert len(model.find_label_issues()) == len(x)


def test_few_rows_get_more_epochs():
    x, given, _ = digits()
    for rows, batch_size, expected in [(1797, 128, 10), (600, 256, 17), (60, 128, 50)]:
        model = AgraClassifier(batch_size=batch_size, judging=False)
        assert model.fit(x[:rows], given[:rows]).n_iter_ == expected
    assert AgraClassifier(epochs=3).fit(x[:60], given[:60]).n_iter_ == 3
    with pytest.raises(TypeError, match="Expected `epochs` to be a whole number, got 'some'"):
        AgraClassifier(epochs="some").fit(x, given)


def test_a_module_in_place_of_the_linear_model():
    x, given, y = digits()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    before = [p.clone() for p in network.parameters()]
    weights = np.where(np.arange(len(x)) % 5, 1.0, 0.5)
    model = AgraClassifier(module=network, random_state=0, epochs=15, learning_rate=0.005)
    model.fit(x, given, sample_weight=weights, validation=(x, y))
    assert model.score(x, y) > 0.85
    assert all(torch.equal(p, q) for p, q in zip(network.parameters(), before, strict=True))
    assert model.find_label_issues()["drop_rate"].between(0, 1).all()
    made = AgraClassifier(module=nn.Linear, random_state=0, epochs=2, judging=False).fit(x, given)
    assert isinstance(made.model_, nn.Linear)
    images = AgraClassifier(module=nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), epochs=1)
    assert images.fit(x.reshape(-1, 1, 8, 8), given).predict(x.reshape(-1, 1, 8, 8)).shape == (
        1797,
    )


def test_modules_that_cannot_work():
    x, given, _ = digits()
    with pytest.raises(ValueError, match="Expected `module` to have 10 outputs, one per class"):
        AgraClassifier(module=nn.Linear(64, 3)).fit(x, given)
    with pytest.raises(
        TypeError, match=r"Expected `module` to be a torch\.nn\.Module, or a callable"
    ):
        AgraClassifier(module="mlp").fit(x, given)


def stream(model, x, y, size=200, **first):
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        model.partial_fit(x[part], y[part], **(first if start == 0 else {}))
    return model


def test_a_stream_in_chunks():
    x, given, y = digits()
    model = stream(AgraClassifier(random_state=0, batch_size=16), x, given, classes=np.arange(10))
    assert model.score(x, y) > 0.8
    assert len(model.find_label_issues()) == 1797 % 200
    assert model.ledger_.shape == (1797 % 200,)
    with pytest.raises(ValueError, match="Expected `y` to hold only the classes"):
        model.partial_fit(x[:20], np.full(20, 11))
    with pytest.raises(ValueError, match="Expected `classes` to be those of the first call"):
        model.partial_fit(x[:20], given[:20], classes=[1, 2])
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        AgraClassifier().partial_fit(x[:20], given[:20])


def test_chunks_of_one_class_and_of_none():
    x, _, _ = digits()
    model = AgraClassifier(random_state=0).partial_fit(x[:9], np.full(9, 3), classes=np.arange(10))
    before = model.model_.weight.clone()
    model.partial_fit(x[:9], np.full(9, np.nan))
    assert torch.equal(model.model_.weight, before)
    assert np.isfinite(model.predict_proba(x)).all()


def test_the_same_seed_gives_the_same_model():
    x, given, _ = digits()
    first = AgraClassifier(random_state=7, epochs=2).fit(x, given)
    again = AgraClassifier(random_state=7, epochs=2).fit(x, given)
    other = AgraClassifier(random_state=8, epochs=2).fit(x, given)
    np.testing.assert_array_equal(first.predict_proba(x), again.predict_proba(x))
    assert not np.array_equal(first.predict_proba(x), other.predict_proba(x))


def test_the_global_random_state_is_left_alone():
    x, given, _ = digits()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    AgraClassifier(epochs=1).fit(x, given)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.filterwarnings("ignore:Expected `comparison_size` to be at most:UserWarning")
def test_settings_at_their_limits():
    x, given, _ = digits()
    for settings in (
        {"batch_size": 10_000},
        {"batch_size": 1},
        {"comparison_size": 10_000},
        {"weights": np.ones(60)},
        {"parameters": "*"},
        {"momentum": 0.9},
        {"threshold": 1.0},
    ):
        model = AgraClassifier(epochs=1, random_state=0, **settings).fit(x[:60], given[:60])
        assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "Expected `epochs` to be at least 1, got 0"),
        ({"epochs": 1.5}, "Expected `epochs` to be a whole number, got 1.5"),
        ({"batch_size": -1}, "Expected `batch_size` to be at least 1, got -1"),
        (
            {"learning_rate": 0},
            'Expected `learning_rate` to be "auto", or finite and above 0, got 0',
        ),
        ({"learning_rate": "fast"}, 'Expected `learning_rate` to be "auto"'),
        ({"weight_decay": -1}, "Expected `weight_decay` to be finite and at least 0, got -1"),
        ({"threshold": 3}, r"Expected `threshold` to be in \[-1, 1\], got 3"),
        ({"momentum": 1}, r"Expected `momentum` to be in \[0, 1\), got 1"),
        ({"criterion": "f2"}, "Expected `criterion` to be one of"),
        ({"weights": "equal"}, "Expected `weights` to be one of"),
        ({"selection": "best"}, "Expected `selection` to be one of"),
        (
            {"selection": "validation"},
            'Expected `validation` with selection="validation", got None',
        ),
        ({"parameters": "bias"}, "Expected `parameters` of a linear model to be None"),
        ({"comparison_size": 0}, "Expected `comparison_size` to be at least 1, got 0"),
    ],
)
def test_settings_that_cannot_work(settings, message):
    x, given, _ = digits()
    with pytest.raises((ValueError, TypeError), match=message):
        AgraClassifier(**settings).fit(x, given)


def test_labels_that_cannot_work():
    x, given, _ = digits()
    model = AgraClassifier()
    with pytest.raises(ValueError, match="Expected `y` to hold samples of at least 2 classes"):
        model.fit(x, np.zeros(len(x)))
    with pytest.raises(ValueError, match="at least 2 classes, with weights above 0, got 0 class"):
        model.fit(x, np.full(len(x), np.nan))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        model.fit(x, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(x, given[:-1])
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        model.fit(x, given, sample_weight=np.full(len(x), -1.0))
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        model.fit(x, given, sample_weight=np.zeros(len(x)))


def test_validation_that_cannot_work():
    x, given, _ = digits()
    model = AgraClassifier()
    with pytest.raises(ValueError, match="Expected `y` to hold only the classes"):
        model.fit(x, given % 5, validation=(x, given))
    with pytest.raises(ValueError, match="Expected as many rows as labels in `validation`, got 9"):
        model.fit(x, given, validation=(x[:9], given[:8]))
    with pytest.raises(ValueError, match=r"Expected `validation` to be \(X, y\), got ndarray"):
        model.fit(x, given, validation=x)
    with pytest.raises(ValueError, match="Expected `validation` to have a label for every row"):
        model.fit(x, given, validation=(x[:2], [1, np.nan]))
    assert not hasattr(model, "model_")


def test_extreme_imbalance():
    x, _, _ = digits()
    labels = np.zeros(len(x), dtype=int)
    labels[0] = 1
    model = AgraClassifier(random_state=0).fit(x, labels)
    assert np.isfinite(model.predict_proba(x)).all()


def test_a_progress_bar_on_demand(capfd):
    x, given, _ = digits()
    AgraClassifier(epochs=2, verbose=True).fit(x, given)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "epoch" in shown.err
    AgraClassifier(epochs=2).fit(x, given)
    assert capfd.readouterr().err == ""


def test_the_marker_of_no_label_is_no_class():
    x, given, _ = digits()
    given[:50] = IGNORE_LABEL
    model = AgraClassifier(random_state=0).fit(x, given)
    assert model.classes_.tolist() == list(range(10))
    assert model.find_label_issues()["given_label"][:50].isna().all()


def test_columns_of_labels_go_by_name():
    x, _, truth = digits()
    y = pd.DataFrame({name: truth % 3 == place for place, name in enumerate("abc")}).astype(int)
    model = AgraMultilabelClassifier(random_state=0, epochs=5).fit(x, y)
    turned = AgraMultilabelClassifier(random_state=0, epochs=5)
    turned.partial_fit(x, y[["c", "a", "b"]], classes=["a", "b", "c"])
    again = AgraMultilabelClassifier(random_state=0, epochs=5)
    again.partial_fit(x, y, classes=["a", "b", "c"])
    np.testing.assert_array_equal(turned.predict_proba(x), again.predict_proba(x))
    held_out = (x, y[["b", "c", "a"]])
    model.fit(x, y, validation=held_out)
    plain = clone(model).fit(x, y, validation=(x, y))
    assert [epoch.score for epoch in model.history_] == [epoch.score for epoch in plain.history_]
    with pytest.raises(ValueError, match=r"have a column for each of the labels .* none for \['c'"):
        turned.partial_fit(x, y.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match=r"columns for the labels \['a', 'b', 'c'\] only, got"):
        turned.partial_fit(x, y.assign(d=0))


def test_what_is_refused_changes_nothing():
    x, given, _ = digits()
    model = AgraClassifier(random_state=0, epochs=2).fit(x, given)
    before = model.predict_proba(x)
    with pytest.raises(ValueError, match="Expected `patience` to be at least 1, got 0"):
        model.set_params(patience=0).fit(x[:, :5], given % 3, validation=(x[:, :5], given % 3))
    np.testing.assert_array_equal(model.predict_proba(x), before)
    fresh = AgraClassifier(epochs=0)
    with pytest.raises(ValueError, match="Expected `epochs` to be at least 1, got 0"):
        fresh.fit(x, given)
    with pytest.raises(NotFittedError):
        fresh.predict(x)


def test_issues_are_indexed_like_the_labels_if_the_rows_have_no_index():
    x, given, _ = digits()
    names = [f"row {row}" for row in range(len(given))]
    model = AgraClassifier(random_state=0, epochs=1)
    for features, labels in [
        (sparse.csr_matrix(x), pd.Series(given, index=names)),
        (pd.DataFrame(x, index=names), given),
    ]:
        assert model.fit(features, labels).find_label_issues().index.tolist() == names
    assert model.fit(x.tolist(), given.tolist()).find_label_issues().index.tolist()[:2] == [0, 1]


def test_numbers_of_numpy_are_numbers():
    x, given, _ = digits()
    model = AgraClassifier(batch_size=np.int64(64), epochs=np.int64(2)).fit(x, given)
    assert model.n_iter_ == 2

"""Injected noise: exact in amount, by seed, and where it should be."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from agra import IGNORE_LABEL
from agra.data.noise import (
    instance_noise,
    matrix_noise,
    multilabel_noise,
    noise_matrix,
    pair_noise,
    sparse_noise,
    symmetric_noise,
)

SHARE = st.floats(0, 1) | st.sampled_from([0, 0.1, 0.3, 0.5, 1 / 3, 1])
SEED = st.integers(0, 99)


@st.composite
def label_vectors(draw):
    num_classes = draw(st.integers(2, 6))
    codes = st.sampled_from([IGNORE_LABEL, *range(num_classes)])
    return np.array(draw(st.lists(codes, max_size=60)), dtype=np.int64), num_classes


def check(noise, true, num_classes):
    """What holds of all noise in single labels; returns how many are wrong."""
    there = true >= 0
    assert (noise.labels[~there] == IGNORE_LABEL).all()
    counts = np.zeros((num_classes, num_classes), dtype=int)
    for before, after in zip(true[there], noise.labels[there], strict=True):
        counts[before, after] += 1
    assert noise.matrix.tolist() == counts.tolist()
    wrong = int((noise.labels[there] != true[there]).sum())
    assert noise.rate == (wrong / there.sum() if there.any() else 0)
    return wrong


def check_expected(noise, shares):
    """Every count is what was expected, rounded down or up, and the sum is the nearest."""
    sizes = noise.matrix.sum(axis=1)
    wrong = sizes - noise.matrix.diagonal()
    expected = sizes * (1 - np.diagonal(shares))
    assert (np.abs(wrong - expected) < 1 + 1e-9).all()
    assert abs(wrong.sum() - expected.sum()) <= 0.5 + 1e-9
    others = shares * (1 - np.eye(len(shares)))
    within = others / np.maximum(others.sum(axis=1, keepdims=True), 1e-300) * wrong[:, None]
    off_diagonal = noise.matrix - np.diag(noise.matrix.diagonal())
    assert (np.abs(off_diagonal - within) < 1 + 1e-9).all()
    assert (off_diagonal[others == 0] == 0).all()


@given(label_vectors(), SHARE, SEED)
@settings(deadline=None)
def test_symmetric_and_pair_noise_are_exact(case, amount, seed):
    true, num_classes = case
    spread = np.full((num_classes, num_classes), amount / (num_classes - 1))
    np.fill_diagonal(spread, 1 - amount)
    following = (1 - amount) * np.eye(num_classes)
    following[np.arange(num_classes), (np.arange(num_classes) + 1) % num_classes] = amount
    for inject, shares in ((symmetric_noise, spread), (pair_noise, following)):
        before = true.copy()
        noise = inject(true, amount, num_classes, seed=seed)
        assert (true == before).all()
        wrong = check(noise, true, num_classes)
        assert abs(wrong - amount * (true >= 0).sum()) <= 0.5 + 1e-9
        check_expected(noise, shares)
        assert (noise.labels == inject(true, amount, num_classes, seed=seed).labels).all()


@given(label_vectors(), SEED)
@settings(deadline=None)
def test_matrix_noise_gives_the_rows_of_the_matrix(case, seed):
    true, num_classes = case
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(num_classes, 0.5), num_classes)
    shares[rng.random(shares.shape) < 0.3] = 0
    shares[:, 0] += shares.sum(axis=1) == 0
    shares /= shares.sum(axis=1, keepdims=True)
    noise = matrix_noise(true, shares, seed=seed)
    check(noise, true, num_classes)
    check_expected(noise, shares)


def test_which_samples_are_wrong_is_even():
    true = np.arange(12) % 3
    hits = np.zeros((12, 3))
    for seed in range(3000):
        noisy = symmetric_noise(true, 0.25, 3, seed=seed).labels
        hits[np.arange(12), noisy] += noisy != true
    assert (hits[np.arange(12), true] == 0).all()
    expected = 3000 * 0.25 / 2
    assert np.abs(hits[hits > 0] - expected).max() < 5.5 * expected**0.5
    assert (hits > 0).sum() == 24


@given(st.integers(2, 12), st.floats(0.01, 0.6), st.floats(0, 0.5), SEED)
@settings(deadline=None)
def test_matrices_have_the_trace_and_the_zeros_asked_for(num_classes, amount, sparsity, seed):
    asked = {"sparsity": sparsity, "seed": seed}
    if num_classes < 4:
        asked["sparsity"] = 0
    matrix = noise_matrix(num_classes, amount, **asked)
    places = num_classes * (num_classes - 1)
    assert (matrix == 0).sum() == round(asked["sparsity"] * places)
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert matrix.trace() == pytest.approx(num_classes * (1 - amount))
    if amount < 0.5:
        assert (matrix.diagonal() >= 0.5).all()
    assert (matrix == noise_matrix(num_classes, amount, **asked)).all()


def test_the_papers_noise_of_cifar10_in_kind():
    true = np.repeat(np.arange(10), 5000)
    noise = sparse_noise(true, 0.2, 10, sparsity=0.6)
    assert noise.rate == 0.2
    assert (noise.matrix == 0).sum() == 54
    shares = noise.matrix.diagonal() / 5000
    assert shares.min() < 0.75 < 0.9 < shares.max()


@given(label_vectors(), st.floats(0, 0.6), SEED)
@settings(deadline=None)
def test_sparse_noise_counts_classes_by_their_size(case, amount, seed):
    true, num_classes = case
    noise = sparse_noise(true, amount, num_classes, sparsity=0, seed=seed)
    wrong = check(noise, true, num_classes)
    assert abs(wrong - amount * (true >= 0).sum()) <= 0.5 + 1e-6


def test_few_noisy_classes_carry_all_the_noise():
    matrix = noise_matrix(5, 0.1, sparsity=0.95)
    assert (matrix == 0).sum() == 19
    assert sorted(matrix.diagonal().round(9)) == [0.5, 1, 1, 1, 1]
    matrix = noise_matrix(5, 0.1, sparsity=0.95, prior=[0, 0, 4, 0, 0])
    assert matrix[2, 2] == pytest.approx(0.9)  # the only class there is
    assert (noise_matrix(3, 0, sparsity=0.5) == np.eye(3)).all()


def clouds(size=600, seed=0):
    """Three classes on a line, the middle one near to both others."""
    rng = np.random.default_rng(seed)
    true = np.arange(size) % 3
    return rng.normal(size=(size, 2)) + 3 * np.stack([true, np.zeros(size)], axis=1), true


@given(label_vectors(), SHARE, SEED)
@settings(deadline=None)
def test_instance_noise_has_the_rate_asked_for(case, amount, seed):
    true, num_classes = case
    if len(set(true[true >= 0].tolist())) < 2:
        return
    features = np.random.default_rng(seed).normal(size=(len(true), 3))
    noise = instance_noise(true, amount, num_classes, features, seed=seed)
    wrong = check(noise, true, num_classes)
    assert abs(wrong - amount * (true >= 0).sum()) <= 0.5 + 1e-6
    assert set(noise.labels.tolist()) <= set(true.tolist())  # no class that lies nowhere
    again = instance_noise(true, amount, num_classes, features, seed=seed)
    assert (noise.labels == again.labels).all()


def test_instance_noise_falls_near_other_classes():
    features, true = clouds()
    wrong, given_to = np.zeros(len(true)), np.zeros((3, 3))
    for seed in range(40):
        noise = instance_noise(true, 0.2, 3, features, seed=seed)
        wrong += noise.labels != true
        given_to += noise.matrix
    first = true == 0
    near = first & (features[:, 0] > 1)
    assert wrong[near].mean() > 3 * wrong[first & (features[:, 0] < -1)].mean()
    assert wrong[true == 1].mean() > wrong[true != 1].mean()
    assert given_to[0, 1] > 2 * given_to[0, 2]


def test_instance_noise_does_not_depend_on_scale_place_or_format():
    features, true = clouds()
    labels = instance_noise(true, 0.2, 3, features).labels
    matrix = sparse.csr_matrix(features)
    images = features.reshape(-1, 1, 2)
    for same in (features * 1e-200, features * 1e200, features + 1e6, matrix, images):
        assert (instance_noise(true, 0.2, 3, same).labels == labels).all()
    alike = instance_noise(true, 0.2, 3, np.ones((len(true), 1)))
    assert alike.rate == 0.2


@given(
    st.lists(st.lists(st.sampled_from([0, 1, np.nan]), min_size=4, max_size=4), max_size=15),
    SHARE,
    st.sampled_from(["flip", "lose", "add"]),
    SEED,
)
@settings(deadline=None)
def test_entries_are_turned_around_exactly(rows, amount, kind, seed):
    true = np.array(rows, dtype=np.float32).reshape(-1, 4)
    noise = multilabel_noise(true, amount, kind=kind, seed=seed)
    assert (np.isnan(noise.labels) == np.isnan(true)).all()
    ones, zeros = int((true == 1).sum()), int((true == 0).sum())
    lost, added = (int(((true == k) & (noise.labels == 1 - k)).sum()) for k in (1, 0))
    assert noise.matrix.tolist() == [[zeros - added, added], [lost, ones - lost]]
    among = {"flip": ones + zeros, "lose": ones, "add": zeros}[kind]
    assert lost + added == round(amount * among)
    assert noise.rate == pytest.approx((lost + added) / max(1, ones + zeros))
    assert {"flip": 0, "lose": added, "add": lost}[kind] == 0
    again = multilabel_noise(true, amount, kind=kind, seed=seed)
    np.testing.assert_array_equal(noise.labels, again.labels)


def test_seeds_differ():
    features, true = clouds(90)
    matrix = np.stack([true % 2, true // 2], axis=1)
    for inject in (
        lambda seed: symmetric_noise(true, 0.3, 3, seed=seed),
        lambda seed: pair_noise(true, 0.3, 3, seed=seed),
        lambda seed: sparse_noise(true, 0.3, 3, sparsity=0.5, seed=seed),
        lambda seed: instance_noise(true, 0.3, 3, features, seed=seed),
        lambda seed: multilabel_noise(matrix, 0.3, seed=seed),
    ):
        assert (inject(0).labels != inject(1).labels).any()


def test_tensors_may_go_in():
    clean = torch.arange(60) % 3
    assert (symmetric_noise(clean, 0.25, 3).labels != clean.numpy()).sum() == 15


def test_refusals_of_amounts_and_labels():
    for amount in (1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match=r"Expected `amount` to be in \[0, 1\], got"):
            symmetric_noise([0, 1], amount, 2)
    with pytest.raises(ValueError, match=r"Expected `sparsity` to be in \[0, 1\], got 2"):
        sparse_noise([0, 1], 0.2, 2, sparsity=2)
    with pytest.raises(ValueError, match="Expected `num_classes` to be at least 2, got 1"):
        pair_noise([0, 0], 0.5, 1)
    with pytest.raises(ValueError, match=r"to be one class index per sample, got shape \(2, 2\)"):
        symmetric_noise([[0, 1], [1, 0]], 0.5, 2)
    with pytest.raises(ValueError, match=r"`labels` to be in \[0, 1\].*got 2 in row 1"):
        symmetric_noise([0, 2], 0.5, 2)
    with pytest.raises(ValueError, match="Expected `labels` to be a 0/1 matrix, one column per la"):
        multilabel_noise([0, 1], 0.5)
    with pytest.raises(ValueError, match="did you mean 'lose'"):
        multilabel_noise([[0, 1]], 0.5, kind="loose")


def test_refusals_of_matrices_and_features():
    with pytest.raises(ValueError, match=r"one row and one column per class, got shape \(1, 2\)"):
        matrix_noise([0, 1], [[0.5, 0.5]])
    for row in ([0.5, 0.6], [1.5, -0.5], [np.nan, 1]):
        with pytest.raises(ValueError, match="`matrix` to have rows of shares that are not negat"):
            matrix_noise([0, 1], [[1, 0], row])
    for prior in ([1], [1, -1], [0, 0], [np.nan, 1], [np.inf, 1]):
        with pytest.raises(ValueError, match="Expected `prior` to be one size per class"):
            noise_matrix(2, 0.1, sparsity=0, prior=prior)
    with pytest.raises(ValueError, match="Expected `sparsity` to leave noise in classes that hold"):
        noise_matrix(4, 0.3, sparsity=0.95)
    with pytest.raises(ValueError, match=r"Expected one row of `features` per label \(2\), got"):
        instance_noise([0, 1], 0.5, 2, [[1.0]])
    for features in ([[1.0], [np.nan]], [["a"], ["b"]]):
        with pytest.raises(ValueError, match="Expected `features` to be finite numbers, got"):
            instance_noise([0, 1], 0.5, 2, features)
    with pytest.raises(ValueError, match="`labels` of at least 2 classes to be near to, got 1"):
        instance_noise([0, 0], 0.5, 2, [[1.0], [2.0]])

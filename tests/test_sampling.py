import itertools
import math
import warnings
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import Dataset

from agra import sampling
from agra.sampling import ComparisonSampler
from agra.train_set import TrainSet

NAN = math.nan
repeatable = settings(max_examples=40, deadline=None, derandomize=True)


def numbered(labels):
    """A training set in which the input of a row is its number."""
    return TrainSet((torch.arange(float(len(labels))).unsqueeze(1), labels))


class Numbers(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, row):
        return torch.tensor([float(row)]), row % 2


# what every draw keeps to

populations = {
    "uniform": ([0, 1] * 10, "uniform"),
    "unlabelled": ([0, -100, 1, 1] * 5, "uniform"),
    "by-class": ([0] * 17 + [1, 1, 2], "inverse-frequency"),
    "by-class-unlabelled": ([0] * 9 + [-100] * 8 + [1, 1, 2], "inverse-frequency"),
    "soft": (torch.tensor([[0.9, 0.1], [0.5, 0.5]] * 10), "inverse-frequency"),
    "explicit": ([0] * 20, torch.arange(20.0)),
    "explicit-unlabelled": ([0, -100] * 10, torch.arange(20.0)),
}
each_population = pytest.mark.parametrize(
    ("labels", "weights"), populations.values(), ids=populations.keys()
)


@each_population
def test_every_size_draws_different_rows_among_those_that_may_be_drawn(labels, weights):
    train_set = numbered(labels)
    sampler = ComparisonSampler(train_set, weights=weights)
    rows = sampling._labelled_rows(train_set.labels)
    allowed = set(range(20) if rows is None else rows.tolist())
    if isinstance(weights, torch.Tensor):
        allowed -= set((weights == 0).nonzero().flatten().tolist())
    assert sampler.num_rows == len(allowed)
    for size in range(1, len(allowed) + 1):
        rows = sampler.draw_rows(size)
        assert rows.dtype == torch.int64
        assert len(set(rows.tolist())) == len(rows) == size
        assert set(rows.tolist()) <= allowed
    assert set(sampler.draw_rows(len(allowed)).tolist()) == allowed


@each_population
@pytest.mark.parametrize("size", [3, 9])
def test_the_same_seed_draws_the_same_rows_and_another_seed_others(labels, weights, size):
    def draws(seed):
        sampler = ComparisonSampler(numbered(labels), weights=weights, seed=seed)
        return [sampler.draw_rows(size).tolist() for _ in range(5)]

    assert draws(0) == draws(0)
    assert draws(0) != draws(1)
    assert len({tuple(rows) for rows in draws(0)}) > 1


@each_population
def test_a_saved_state_goes_on_with_the_same_rows(labels, weights):
    sampler = ComparisonSampler(numbered(labels), weights=weights, seed=3)
    sampler.draw(4)
    state = sampler.state_dict()
    expected = [sampler.draw_rows(size).tolist() for size in (3, 9, 4)]
    for other in (sampler, ComparisonSampler(numbered(labels), weights=weights, seed=99)):
        other.load_state_dict(state)
        assert [other.draw_rows(size).tolist() for size in (3, 9, 4)] == expected


def test_a_draw_gives_the_inputs_and_labels_of_the_rows_drawn():
    labels = [0, 1, 2, 3, -100]
    sampler, twin = (ComparisonSampler(numbered(labels), seed=5) for _ in range(2))
    inputs, given_labels = sampler.draw(3)
    assert inputs.flatten().tolist() == twin.draw_rows(3).tolist()
    assert given_labels.tolist() == [labels[int(row)] for row in inputs.flatten()]


@repeatable
@given(st.lists(st.integers(-1, 3), min_size=1, max_size=12), st.integers(1, 12), st.booleans())
def test_any_labels_and_size_give_different_labelled_rows(labels, size, weighted):
    labels = [label if label >= 0 else -100 for label in labels]
    known = {row for row, label in enumerate(labels) if label >= 0}
    if not known:
        return
    weights = "inverse-frequency" if weighted else "uniform"
    sampler = ComparisonSampler(numbered(labels), weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = sampler.draw_rows(size).tolist()
    assert len(rows) == len(set(rows)) == min(size, len(known))
    assert set(rows) <= known


def test_samples_without_a_label_are_never_drawn_whatever_marks_them():
    for labels in (
        [0, -100, 1],
        [0.0, NAN, 1.0],
        [[0.5, 0.5], [NAN, NAN], [1.0, 0.0]],
        [[1, 0], [-100, -100], [-100, 1]],
    ):
        sampler = ComparisonSampler(numbered(labels))
        assert {int(sampler.draw_rows(1)) for _ in range(40)} == {0, 2}


# the distribution of drawing one by one without replacement


def successive(weights, size):
    """The probability of every ordered draw: each next row by weight among those left."""
    probabilities = {}
    for rows in itertools.permutations([r for r, w in enumerate(weights) if w > 0], size):
        left, probability = sum(weights), 1.0
        for row in rows:
            probability *= weights[row] / left
            left -= weights[row]
        probabilities[rows] = probability
    assert math.isclose(sum(probabilities.values()), 1)
    return probabilities


def check_distribution(draw, probabilities, draws=3000):
    counts = Counter(tuple(draw()) for _ in range(draws))
    assert counts.keys() <= probabilities.keys()
    statistic = sum(
        (counts[rows] - draws * p) ** 2 / (draws * p) for rows, p in probabilities.items()
    )
    assert statistic < chi2.ppf(0.9999, len(probabilities) - 1)


schemes = {
    "uniform": ([0] * 4, "uniform", [1.0] * 4),
    "uniform-unlabelled": ([0, -100, 1, 0, 1], "uniform", [1, 0, 1, 1, 1.0]),
    "by-class": ([0, 0, 0, 1], "inverse-frequency", [1, 1, 1, 3.0]),
    "by-class-unlabelled": ([-100, 0, 0, 1, 0], "inverse-frequency", [0, 1, 1, 3, 1.0]),
    "by-class-of-three": ([5, 0, 5, 7, 0, 5], "inverse-frequency", [2, 3, 2, 6, 3, 2.0]),
    "soft": (
        torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [NAN, NAN], [1.0, 0.0]]),
        "inverse-frequency",
        [1 / 3, 2 / 3, 2 / 3, 0, 1 / 3],  # 1/3 of class 0; 1/6 of class 0 and 1/2 of class 1
    ),
    "explicit": ([0] * 5, [0.1, 5.0, 0.0, 1.0, 2.0], [0.1, 5.0, 0.0, 1.0, 2.0]),
    "explicit-unlabelled": ([0, 0, -100, 0, 0], [1, 2, 9, 3, 4.0], [1, 2, 0, 3, 4.0]),
}
each_scheme = pytest.mark.parametrize(
    ("labels", "weights", "expected"), schemes.values(), ids=schemes.keys()
)


@each_scheme
def test_guessed_draws_follow_successive_sampling(labels, weights, expected, monkeypatch):
    sampler = ComparisonSampler(numbered(labels), weights=weights, seed=11)
    assert sampler.num_rows >= 4
    monkeypatch.setattr(sampling, "_ROUNDS", 1000)  # never the sorted draw
    monkeypatch.setattr(sampler.rows, "_sorted_draw", None)
    check_distribution(lambda: sampler.draw_rows(2).tolist(), successive(expected, 2))


def finish(sampler, drawn, size):
    """A draw that sorting has to finish, as numbers of the training set."""
    drawn = torch.tensor(drawn, dtype=torch.int64)
    rows = torch.cat([drawn, sampler.rows._sorted_draw(size - len(drawn), drawn)])
    return (rows if sampler.rows._rows is None else sampler.rows._rows[rows]).tolist()


@each_scheme
def test_sorted_draws_follow_successive_sampling(labels, weights, expected):
    sampler = ComparisonSampler(numbered(labels), weights=weights, seed=12)
    check_distribution(lambda: finish(sampler, [], 3), successive(expected, 3), 4000)


@each_scheme
def test_draws_begun_by_guessing_and_ended_by_sorting_follow_it_too(
    labels, weights, expected, monkeypatch
):
    sampler = ComparisonSampler(numbered(labels), weights=weights, seed=13)
    guess, sort, sorted_sizes = sampler.rows._guess, sampler.rows._sorted_draw, Counter()

    def few_guesses(n):  # all guesses for one draw are the same row
        width = 2 * 2 + 8
        return guess(n // width).repeat_interleave(width) if n % width == 0 else guess(1)

    def sorted_draw(size, drawn):
        sorted_sizes[size] += 1
        return sort(size, drawn)

    monkeypatch.setattr(sampling, "_ROUNDS", 1)
    monkeypatch.setattr(sampler.rows, "_guess", few_guesses)
    monkeypatch.setattr(sampler.rows, "_sorted_draw", sorted_draw)
    check_distribution(lambda: sampler.draw_rows(2).tolist(), successive(expected, 2))
    assert sorted_sizes[1] > 0


def test_the_bound_tells_a_wrong_distribution():
    sampler = ComparisonSampler(numbered([0, 0, 0, 1]), seed=11)
    with pytest.raises(AssertionError):
        check_distribution(
            lambda: sampler.draw_rows(2).tolist(), successive([1, 1, 1, 1.5], 2), 4000
        )


def test_rows_with_a_label_are_known_by_number():
    soft = torch.tensor([[0.5, 0.5]] * 2 + [[math.nan] * 2])
    several = torch.tensor([[-100, -100], [1, -100], [0, 1]])
    for labels, expected in (
        (torch.tensor([0, -100, 2]), [0, 2]),
        (torch.zeros(3), None),
        (soft, [0, 1]),
        (several, [1, 2]),
    ):
        found = sampling._labelled_rows(labels)
        assert found is None if expected is None else found.tolist() == expected


# sizes


@pytest.mark.parametrize("weights", ["uniform", "inverse-frequency"])
def test_a_size_larger_than_the_data_warns_and_uses_all(weights):
    sampler = ComparisonSampler(numbered([0, 1, -100, 1]), weights=weights)
    text = r"`comparison_size` to be at most 3, .* got 7; using all of them\."
    with pytest.warns(UserWarning, match=text):
        rows = sampler.draw_rows(7)
    assert sorted(rows.tolist()) == [0, 1, 3]
    with pytest.warns(UserWarning, match=text):
        assert sampler.check_size(7) == 3


def test_rows_of_weight_zero_do_not_count_as_data():
    sampler = ComparisonSampler(numbered([0] * 5), weights=[0, 1, 0, 2, 0])
    with pytest.warns(UserWarning, match="to be at most 2"):
        assert sorted(sampler.draw_rows(3).tolist()) == [1, 3]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_size_that_fits_passes_without_a_warning(size):
    assert ComparisonSampler(numbered([0, 1, 1])).check_size(size) == size


@pytest.mark.parametrize("size", [0, -3])
def test_a_size_below_one_is_refused(size):
    sampler = ComparisonSampler(numbered([0, 1]))
    text = rf"`comparison_size` to be at least 1, got {size}\."
    for attempt in (sampler.draw, sampler.draw_rows, sampler.check_size):
        with pytest.raises(ValueError, match=text):
            attempt(size)


# the cost


class Work(TorchDispatchMode):
    """Counts the numbers that torch computes."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        parts = found if isinstance(found, tuple | list) else [found]
        self.numbers += sum(part.numel() for part in parts if isinstance(part, torch.Tensor))
        return found


def work_of_draws(sampler, size):
    """The numbers computed per draw, and how many were guessed."""
    guessed = []
    guess, draws = sampler.rows._guess, sampling._BLOCK // size
    sampler.rows._guess = lambda n: guessed.append(n) or guess(n)
    with Work() as counted:
        for _ in range(draws):
            sampler.draw_rows(size)
    return counted.numbers / draws, sum(guessed) / draws


@pytest.mark.parametrize("weights", ["uniform", "inverse-frequency", "explicit"])
def test_the_cost_of_a_draw_does_not_grow_with_the_training_set(weights):
    most = {}
    for size in (10**4, 10**7 if weights != "inverse-frequency" else 10**6):
        if weights == "uniform":
            sampler = ComparisonSampler(TrainSet(Numbers(size)))
        elif weights == "inverse-frequency":
            train_set = TrainSet((torch.empty(size, 0), torch.arange(size) % 3))
            sampler = ComparisonSampler(train_set, weights=weights)
        else:
            train_set = TrainSet(Numbers(size))
            sampler = ComparisonSampler(train_set, weights=torch.ones(size, dtype=torch.float64))
        most[size], guessed = work_of_draws(sampler, 64)
        assert guessed == 2 * 64 + 8  # one round each
    assert max(most.values()) <= 1.1 * min(most.values())
    assert max(most.values()) < 60 * 64


def test_a_draw_of_some_rows_of_ten_million_reaches_all_of_them():
    sampler = ComparisonSampler(TrainSet(Numbers(10**7)))
    rows = sampler.draw_rows(4096)
    assert (rows.double() / 1e7).mean().item() == pytest.approx(0.5, abs=0.03)
    assert rows.max() > 2**23
    assert (rows % 2).double().mean().item() == pytest.approx(0.5, abs=0.05)  # and no rounding


def test_a_draw_ends_however_unlikely_the_rest_is():
    weights = torch.full((1000,), 1e-12)
    weights[7] = 1.0
    sampler = ComparisonSampler(numbered([0] * 1000), weights=weights)
    _, guessed = work_of_draws(sampler, 50)
    assert guessed <= (1 + sampling._ROUNDS) * (2 * 50 + 8)
    rows = sampler.draw_rows(50).tolist()
    assert rows[0] == 7
    assert len(set(rows)) == 50


# extremes


def test_a_class_of_one_among_a_million_is_in_nearly_every_draw():
    labels = torch.zeros(10**6, dtype=torch.int64)
    labels[123_456] = 1
    sampler = ComparisonSampler(
        TrainSet((labels.unsqueeze(1), labels)), weights="inverse-frequency"
    )
    draws = [sampler.draw_rows(16).tolist() for _ in range(50)]
    assert all(123_456 in rows for rows in draws)  # missing with probability 2**-16
    assert all(len(set(rows)) == 16 for rows in draws)


@pytest.mark.parametrize("scale", [2.0**-1040, 2.0**-100, 2.0**100, 2.0**1022])
def test_only_the_ratios_of_weights_count(scale):
    weights = torch.tensor([0, 1, 2, 0, 2, 1, 1, 1], dtype=torch.float64)
    plain, scaled = (
        ComparisonSampler(numbered([0] * 8), weights=factor * weights) for factor in (1.0, scale)
    )
    for size in (1, 2, 5, 6):
        for _ in range(10):
            assert scaled.draw_rows(size).tolist() == plain.draw_rows(size).tolist()


@pytest.mark.parametrize("number", [0.0, 1 - 2.0**-53], ids=["lowest", "highest"])
def test_the_extreme_random_numbers_hit_no_row_that_may_not_be_drawn(number, monkeypatch):
    by_weight = ComparisonSampler(numbered([0] * 5), weights=[0, 0.1, 0, 0.2, 0])
    by_class = ComparisonSampler(numbered([0] * 3), weights="inverse-frequency")
    monkeypatch.setattr(torch, "rand", lambda n, **_: torch.full((n,), number, dtype=torch.float64))
    last = number > 0
    assert by_weight.rows._guess(1).tolist() == [3 if last else 1]
    assert by_class.rows._guess(1).tolist() == [2 if last else 0]
    for sampler in (by_weight, by_class):
        assert len(set(sampler.draw_rows(2).tolist())) == 2


def test_a_single_row_can_be_drawn():
    for weights in ("uniform", "inverse-frequency", [2.0]):
        assert ComparisonSampler(numbered([3]), weights=weights).draw_rows(1).tolist() == [0]


# random items


class Noisy(Numbers):
    def __getitem__(self, row):
        return torch.rand(2) + row, row


def test_random_items_leave_the_global_random_state_as_it_was():
    sampler = ComparisonSampler(TrainSet(Noisy(10)))
    before = torch.get_rng_state()
    sampler.draw(4)
    assert torch.equal(torch.get_rng_state(), before)


def test_random_items_depend_on_the_seed_of_the_sampler_and_on_nothing_else():
    def draws(seed, global_seed):
        torch.manual_seed(global_seed)
        sampler = ComparisonSampler(TrainSet(Noisy(10)), seed=seed)
        return [sampler.draw(4)[0].tolist() for _ in range(2)]

    with torch.random.fork_rng(devices=[]):
        first, second = draws(0, 1)
        assert draws(0, 2) == [first, second]
        assert draws(7, 1) != [first, second]
    fractions = [{value % 1 for row in rows for value in row} for rows in (first, second)]
    assert not fractions[0] & fractions[1]


def test_the_sampler_draws_nothing_from_the_global_random_state():
    before = torch.get_rng_state()
    sampler = ComparisonSampler(numbered([0, 1] * 5), weights="inverse-frequency")
    sampler.draw(2)
    sampler.draw(9)
    assert torch.equal(torch.get_rng_state(), before)


# refusals


@pytest.mark.parametrize(
    ("train_set", "weights", "text"),
    [
        (numbered([-100, -100]), "uniform", r"labelled samples, got only samples without a label"),
        (numbered([0, 1]), "unifrom", r"to be one of .* got 'unifrom'; did you mean 'uniform'\?"),
        (numbered([0, 1]), [1.0], r"one entry per sample of `train_set` \(2\), got shape \(1,\)\."),
        (numbered([0, 1]), [[1.0, 1.0]], r"got shape \(1, 2\)\."),
        (numbered([0, 1]), [1.0, -1.0], r"`weights` to be finite and not negative, got others\."),
        (numbered([0, 1]), [1.0, NAN], r"finite and not negative"),
        (numbered([0, 1]), [1.0, math.inf], r"finite and not negative"),
        (numbered([0, 1]), [0.0, 0.0], r"to have a positive entry, got only zeros\."),
        (numbered([0, -100]), [0.0, 1.0], r"to have a positive entry, got only zeros\."),
        (
            TrainSet(Numbers(3)),
            "inverse-frequency",
            r'labels of `train_set` for weights="inverse-frequency", .* pass labels=\.',
        ),
        (
            numbered([[1, 0], [1, 1]]),
            "inverse-frequency",
            r'weights="uniform" for several labels per sample, got "inverse-frequency"',
        ),
        (
            numbered([[1.0, 0.0], [1.0, NAN]]),
            "inverse-frequency",
            r"several labels per sample",
        ),
    ],
)
def test_weights_that_no_draw_can_follow_are_refused(train_set, weights, text):
    with pytest.raises(ValueError, match=text):
        ComparisonSampler(train_set, weights=weights)


@pytest.mark.parametrize("weights", ["uniform", "inverse-frequency", torch.arange(1.0, 10)])
def test_draws_do_not_depend_on_the_default_device(weights):
    data = TrainSet((torch.arange(9.0).view(9, 1), torch.arange(9) % 2))
    expected = ComparisonSampler(data, weights=weights, seed=0)
    rows = [expected.draw_rows(size).tolist() for size in (2, 9)]
    with torch.device("meta"):  # stands for a default device other than the generator's
        sampler = ComparisonSampler(data, weights=weights, seed=0)
        assert [sampler.draw_rows(size).tolist() for size in (2, 9)] == rows


@pytest.mark.parametrize("size", [2.0, "2", True, None])
def test_a_size_that_is_no_whole_number_is_refused(size):
    sampler = ComparisonSampler(TrainSet((torch.eye(3), [0, 1, 2])))
    with pytest.raises(TypeError, match="Expected `comparison_size` to be a whole number, got "):
        sampler.check_size(size)
    assert sampler.check_size(np.int64(2)) == 2

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agra.decisions import Decisions
from agra.ledger import DROPPED, KEPT, RELABELLED, Ledger

NAN = math.nan
repeatable = settings(max_examples=40, deadline=None, derandomize=True)


def batch(ids, verdicts, scores=None, probabilities=None, labels=None):
    """The arguments of record(): verdicts are "k", "d" or "r", per sample or per entry."""
    codes = np.array(verdicts)
    shape = codes.shape
    kept, dropped, relabelled = (torch.from_numpy(codes == code) for code in "kdr")
    blank = [NAN] * len(ids)
    return (
        torch.tensor(ids, dtype=torch.int64),
        Decisions(
            torch.zeros(shape, dtype=torch.int64) if labels is None else torch.tensor(labels),
            torch.tensor(blank if scores is None else scores, dtype=torch.float32),
            kept,
            dropped,
            relabelled,
        ),
        torch.tensor(blank if probabilities is None else probabilities, dtype=torch.float32),
    )


def judged(ids, verdict="k"):
    return batch(ids, [verdict] * len(ids))


# a ledger of plain dictionaries


class PlainLedger:
    def __init__(self, size):
        self.size = size
        self.totals = {
            row: {
                "judged": 0,
                "kept": 0,
                "dropped": 0,
                "relabelled": 0,
                "new_label": -1,
                "scored": 0,
                "score_sum": 0.0,
                "score_last": NAN,
                "probability_sum": 0.0,
                "probability_last": NAN,
            }
            for row in range(size)
        }
        self.epochs = []
        self.updates = []
        self.judged_in_epoch = 0

    def record(self, ids, verdicts, scores, probabilities, labels):
        again = bool(self.epochs) and any(row in self.epochs[-1] for row in ids)
        if not self.epochs or (again and self.judged_in_epoch >= self.size / 2):
            self.epochs.append({})
            self.judged_in_epoch = 0
        self.judged_in_epoch += len(ids)
        self.updates.append(tuple(verdicts.count(code) for code in "kdr"))
        for row, verdict, score, probability, label in zip(
            ids, verdicts, scores, probabilities, labels, strict=True
        ):
            total = self.totals[row]
            total["judged"] += 1
            total[{"k": "kept", "d": "dropped", "r": "relabelled"}[verdict]] += 1
            if verdict == "r":
                total["new_label"] = label
            if not math.isnan(score):
                total["scored"] += 1
                total["score_sum"] += score
                total["score_last"] = score
            if not math.isnan(probability):
                total["probability_sum"] += probability
            total["probability_last"] = probability
            number = {"k": KEPT, "d": DROPPED, "r": RELABELLED}[verdict]
            self.epochs[-1][row] = (number, score, probability)


eighths = st.integers(-8, 8).map(lambda n: n / 8)  # exact in half precision, and so are their sums


@st.composite
def batches(draw, size, partly_scored=False):
    count = draw(st.integers(1, 2 * size))
    row = st.integers(0, size - 1)
    ids = draw(st.lists(row, min_size=1, max_size=count, unique=partly_scored))
    n = len(ids)
    score = st.one_of(eighths, st.just(NAN)) if partly_scored else eighths
    scores = draw(st.lists(score, min_size=n, max_size=n))
    if not partly_scored and draw(st.booleans()):
        scores = [NAN] * n
    unknown = st.just(NAN)
    return (
        ids,
        draw(st.lists(st.sampled_from("kdr"), min_size=n, max_size=n)),
        scores,
        draw(st.lists(st.one_of(eighths.map(abs), unknown), min_size=n, max_size=n)),
        draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)),
    )


def compare(ledger, plain):
    for name, total in ledger.totals.items():
        expected = [plain.totals[row][name] for row in range(plain.size)]
        np.testing.assert_array_equal(total.numpy(), np.array(expected), err_msg=name)
    assert ledger.updates == plain.updates
    assert len(ledger.epochs) == len(plain.epochs)
    for epoch, expected in zip(ledger.epochs, plain.epochs, strict=True):
        for column, name in enumerate(("verdict", "score", "probability")):
            wanted = [expected.get(row, (0, 0.0, 0.0))[column] for row in range(plain.size)]
            np.testing.assert_array_equal(epoch[name].float().numpy(), np.array(wanted))


@pytest.mark.parametrize("partly_scored", [False, True], ids=["repeated-ids", "partly-scored"])
def test_totals_epochs_and_updates_are_those_of_plain_dictionaries(partly_scored):
    @repeatable
    @given(st.integers(1, 8), st.data())
    def check(size, data):
        ledger, plain = Ledger(size), PlainLedger(size)
        for _ in range(data.draw(st.integers(1, 6))):
            drawn = data.draw(batches(size, partly_scored))
            ledger.record(*batch(*drawn))
            plain.record(*drawn)
            compare(ledger, plain)

    check()


def test_of_a_sample_that_comes_twice_in_a_batch_the_last_score_that_was_computed_stays():
    ledger = Ledger(2)
    ledger.record(*batch([1], ["k"], [0.25]))
    ledger.record(*batch([1, 1], ["k", "d"], [0.5, NAN]))
    assert ledger.totals["scored"].tolist() == [0, 2]
    assert ledger.totals["score_last"][1] == 0.5


def test_a_sample_that_comes_twice_in_a_batch_counts_twice():
    ledger = Ledger(3)
    ledger.record(*batch([2, 0, 2, 2], ["k", "d", "d", "r"], labels=[0, 0, 0, 4]))
    assert ledger.totals["judged"].tolist() == [1, 0, 3]
    assert ledger.totals["dropped"].tolist() == [1, 0, 1]
    assert ledger.totals["new_label"].tolist() == [-1, -1, 4]
    assert ledger.epochs[0]["verdict"].tolist() == [DROPPED, 0, RELABELLED]


def test_relabelled_samples_keep_their_newest_label_and_others_have_none():
    ledger = Ledger(3)
    ledger.record(*batch([0, 1], ["r", "r"], labels=[2, 5]))
    ledger.record(*batch([0, 1], ["r", "k"], labels=[1, 3]))
    assert ledger.totals["relabelled"].tolist() == [2, 1, 0]
    assert ledger.totals["new_label"].tolist() == [1, 5, -1]
    assert ledger.updates == [(0, 0, 2), (1, 0, 1)]


def test_soft_labels_are_remembered_by_their_class():
    ledger = Ledger(2)
    ids, decisions, probabilities = judged([1, 0], "r")
    rows = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    decisions = Decisions(
        rows, decisions.scores, decisions.kept, decisions.dropped, decisions.relabelled
    )
    ledger.record(ids, decisions, probabilities)
    assert ledger.totals["new_label"].tolist() == [0, 2]


def test_several_labels_are_kept_per_entry():
    ledger = Ledger(3, num_labels=2)
    ledger.record(
        *batch(
            [2, 0, 2],
            [["k", "d"], ["d", "d"], ["d", "d"]],
            [[0.5, -0.5], [-0.25, NAN], [-0.5, -1.0]],
            [[0.75, 0.25], [0.5, NAN], [0.25, 0.25]],
        )
    )
    assert ledger.totals["judged"].tolist() == [[1, 1], [0, 0], [2, 2]]
    assert ledger.totals["kept"].tolist() == [[0, 0], [0, 0], [1, 0]]
    assert ledger.totals["dropped"].tolist() == [[1, 1], [0, 0], [1, 2]]
    assert ledger.totals["scored"].tolist() == [[1, 0], [0, 0], [2, 2]]
    assert ledger.totals["score_sum"].tolist() == [[-0.25, 0], [0, 0], [0, -1.5]]
    assert ledger.totals["score_last"][2].tolist() == [-0.5, -1.0]
    assert ledger.totals["probability_sum"].tolist() == [[0.5, 0], [0, 0], [1, 0.5]]
    assert ledger.epochs[0]["verdict"].tolist() == [[2, 2], [0, 0], [2, 2]]
    assert ledger.updates == [(1, 5, 0)]


def test_columns_of_an_entry_are_those_of_its_label():
    ledger = Ledger(2, num_labels=2)
    ledger.record(*batch([1], [["k", "d"]], [[0.5, NAN]], [[0.75, NAN]]))
    ledger.record(*batch([1], [["d", "d"]], [[NAN, -0.5]], [[0.25, 0.5]]))
    assert ledger.totals["score_last"][1].tolist() == [0.5, -0.5]
    frame = ledger.to_frame()
    assert frame.index.names == ["sample", "label"]
    assert frame.index.tolist() == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert frame.loc[(1, 0), "drop_rate"] == 0.5
    assert frame.loc[(1, 1), "drop_rate"] == 1
    assert frame.loc[(1, 0), "mean_score"] == 0.5
    assert frame.loc[(1, 0), "mean_probability"] == 0.5


# epochs


def test_an_epoch_begins_when_a_sample_comes_again():
    ledger = Ledger(5)
    for ids in ([0, 1], [2, 3], [4], [3, 0], [1, 2], [4]):
        ledger.record(*judged(ids))
    assert len(ledger.epochs) == 2
    assert all((epoch["verdict"] == KEPT).all() for epoch in ledger.epochs)


def test_a_loader_that_drops_its_last_batch_has_epochs_too():
    ledger = Ledger(10)
    for ids in ([0, 1, 2, 3, 4, 5], [9, 8, 7, 6, 5, 4], [0, 2, 4, 6, 8, 1]):
        ledger.record(*judged(ids))
    assert [int((epoch["verdict"] > 0).sum()) for epoch in ledger.epochs] == [6, 6, 6]


def test_a_sample_that_comes_again_early_begins_no_epoch():
    ledger = Ledger(10)
    for ids in ([0, 1], [0, 2]):
        ledger.record(*judged(ids))
    assert len(ledger.epochs) == 1


def test_an_epoch_may_be_begun_by_hand():
    ledger = Ledger(10)
    ledger.start_epoch()
    ledger.record(*judged([0]))
    ledger.start_epoch()
    ledger.record(*judged([1], "d"))
    assert [epoch["verdict"].tolist()[:2] for epoch in ledger.epochs] == [[KEPT, 0], [0, DROPPED]]


def test_after_an_epoch_begun_by_hand_the_count_starts_anew():
    ledger = Ledger(4)
    ledger.record(*judged([0, 1, 2]))
    ledger.start_epoch()
    ledger.record(*judged([0]))
    ledger.record(*judged([0]))  # a quarter of all
    assert len(ledger.epochs) == 2


# the frame


def test_the_frame_has_a_row_per_sample_with_rates_and_means():
    ledger = Ledger(4)
    ledger.record(*batch([0, 2], ["d", "r"], [-0.5, 0.25], [0.25, 0.5], [0, 7]))
    ledger.record(*batch([0, 2], ["k", "d"], [0.25, NAN], [0.75, 0.5]))
    frame = ledger.to_frame()
    assert frame.index.name == "sample"
    assert frame.index.tolist() == [0, 1, 2, 3]
    assert frame["judged"].tolist() == [2, 0, 2, 0]
    assert frame["new_label"].isna().tolist() == [True, True, False, True]
    assert frame["new_label"][2] == 7
    expected = {
        "drop_rate": [0.5, NAN, 0.5, NAN],
        "mean_score": [-0.125, NAN, 0.25, NAN],
        "score_last": [0.25, NAN, 0.25, NAN],
        "mean_probability": [0.5, NAN, 0.5, NAN],
        "probability_last": [0.75, NAN, 0.5, NAN],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(frame[name].to_numpy(), np.array(values), err_msg=name)
    assert set(frame.columns) == {
        "judged",
        "kept",
        "dropped",
        "relabelled",
        "new_label",
        *expected,
    }


def test_the_confidence_of_a_sample_without_a_label_is_unknown_and_not_zero():
    ledger = Ledger(1)
    ledger.record(*batch([0], ["d"], [NAN], [NAN]))
    frame = ledger.to_frame()
    assert math.isnan(frame["probability_last"][0])
    assert math.isnan(frame["mean_probability"][0])


def test_the_frame_does_not_change_with_the_ledger():
    ledger = Ledger(2)
    frame = ledger.to_frame()
    ledger.record(*judged([0, 1]))
    assert frame["judged"].tolist() == [0, 0]


# the state


@pytest.mark.parametrize("num_labels", [None, 3])
def test_a_saved_state_comes_back_bit_for_bit_and_goes_on_the_same(num_labels, tmp_path):
    def feed(ledger, seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(4):
            ids = torch.randint(7, (5,), generator=generator)
            shape = (5,) if num_labels is None else (5, num_labels)
            scores = torch.rand(shape, generator=generator) - 0.5
            kept = scores > 0
            labels = torch.zeros(shape)
            decisions = Decisions(labels, scores, kept, ~kept, torch.zeros_like(kept))
            ledger.record(ids, decisions, torch.rand(shape, generator=generator))

    first, second = Ledger(7, num_labels), Ledger(7, num_labels)
    feed(first, 0)
    torch.save(first.state_dict(), tmp_path / "ledger.pt")
    second.load_state_dict(torch.load(tmp_path / "ledger.pt", weights_only=True))
    for seed in (None, 1):
        if seed is not None:
            feed(first, seed)
            feed(second, seed)
        left, right = first.state_dict(), second.state_dict()
        assert left["judged_in_epoch"] == right["judged_in_epoch"]
        assert first.updates == second.updates
        assert torch.equal(left["updates"], right["updates"])
        pairs = [(left["totals"], right["totals"])]
        pairs += list(zip(left["epochs"], right["epochs"], strict=True))
        for one, other in pairs:
            assert one.keys() == other.keys()
            for name in one:
                assert one[name].dtype == other[name].dtype
                assert one[name].numpy().tobytes() == other[name].numpy().tobytes()


def test_the_state_of_an_untouched_ledger_comes_back():
    ledger = Ledger(2)
    ledger.record(*judged([0]))
    ledger.load_state_dict(Ledger(2).state_dict())
    assert ledger.updates == ledger.epochs == []
    assert ledger.totals["judged"].tolist() == [0, 0]


def test_a_state_is_a_copy_both_ways():
    first, second = Ledger(2), Ledger(2)
    first.record(*judged([0]))
    state = first.state_dict()
    second.load_state_dict(state)
    first.record(*judged([0, 1]))
    second.record(*judged([1], "d"))
    assert state["totals"]["judged"].tolist() == [1, 0]
    assert state["epochs"][0]["verdict"].tolist() == [KEPT, 0]
    assert first.totals["dropped"].tolist() == [0, 0]


def test_forty_bytes_a_sample_and_five_more_an_epoch_at_most():
    ledger = Ledger(1000)
    for _ in range(3):
        ledger.record(*judged(list(range(1000))))
    assert len(ledger.epochs) == 3
    state = ledger.state_dict()
    stored = [*state["totals"].values(), *(part for e in state["epochs"] for part in e.values())]
    assert sum(part.numel() * part.element_size() for part in stored) <= 1000 * (40 + 3 * 5)


def test_graphs_and_devices_do_not_enter():
    ledger = Ledger(1)
    ids, decisions, _ = batch([0], ["k"], [0.5])
    ledger.record(ids, decisions, torch.tensor([0.5], requires_grad=True) * 1)
    assert not ledger.totals["probability_last"].requires_grad
    assert not ledger.epochs[0]["probability"].requires_grad


@pytest.mark.parametrize("form", [list, np.array, torch.tensor])
def test_ids_may_be_of_any_integer_kind(form):
    ledger = Ledger(3)
    _, decisions, probabilities = judged([2, 0])
    ledger.record(form([2, 0]), decisions, probabilities)
    assert ledger.totals["judged"].tolist() == [1, 0, 1]


# refusals


@pytest.mark.parametrize("size", [0, -1])
def test_a_ledger_for_no_sample_is_refused(size):
    with pytest.raises(ValueError, match=rf"`size` to be at least 1, got {size}\."):
        Ledger(size)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([0.0, 1.0], r"row numbers of the 2 samples, got torch.float32 of shape \(2,\)\."),
        ([True, False], r"row numbers of the 2 samples, got torch.bool of shape \(2,\)\."),
        ([0, 1, 2], r"row numbers of the 2 samples, got torch.int64 of shape \(3,\)\."),
        ([[0, 1]], r"got torch.int64 of shape \(1, 2\)\."),
        ([0, 5], r"`ids` to be in \[0, 4\], the rows of the training set, got 0 to 5\."),
        ([-1, 2], r"`ids` to be in \[0, 4\], .* got -1 to 2\."),
    ],
)
def test_ids_that_are_no_rows_are_refused_and_nothing_is_recorded(ids, text):
    ledger = Ledger(5)
    _, decisions, probabilities = judged([0, 1])
    with pytest.raises(ValueError, match=text):
        ledger.record(torch.tensor(ids), decisions, probabilities)
    assert ledger.updates == []
    assert int(ledger.totals["judged"].sum()) == 0


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (Ledger(4), r"ledger of shape \(3,\), as the training set, got \(4,\)\."),
        (Ledger(3, 2), r"ledger of shape \(3,\), as the training set, got \(3, 2\)\."),
    ],
)
def test_a_state_of_another_training_set_is_refused(other, text):
    with pytest.raises(ValueError, match=text):
        Ledger(3).load_state_dict(other.state_dict())

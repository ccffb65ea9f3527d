"""The judge in one's own loop: the paper's loop body, resumable, never touching the model."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from agra import IGNORE_LABEL, Agra, ComparisonSampler, Rule, TrainSet, batch_gradient, decide
from cases import UsedOutside, cnn_batch_norm


def data(size=80, num_classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(num_classes, 5, generator=generator)
    labels = torch.arange(size) % num_classes
    return centres[labels] + torch.randn(size, 5, generator=generator), labels


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def test_the_loop_of_the_readme():
    x, y = data()
    wrong = y.clone()
    wrong[:16] = (wrong[:16] + 1) % 3
    train_set = TensorDataset(x, wrong, torch.arange(len(x)))
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    judge = Agra(model, train_set, criterion="f1", weights="inverse-frequency", seed=0)
    loader = DataLoader(train_set, 16, shuffle=True, generator=torch.Generator().manual_seed(0))
    for _ in range(15):
        for inputs, labels, ids in loader:
            loss = judge.loss(inputs, labels, ids)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    totals = judge.ledger.totals
    assert (totals["judged"] == 15).all()
    assert len(judge.ledger.epochs) == 15
    rate = totals["dropped"] / totals["judged"]
    assert rate[:16].mean() > rate[16:].mean() + 0.3
    assert (model(x).argmax(dim=1) == y).float().mean() > 0.9


def test_verdicts_are_those_of_the_functions():
    x, y = data()
    model = network()
    judge = Agra(model, (x, y), criterion="f1", weights="inverse-frequency", seed=3, scores=True)
    sampler = ComparisonSampler(TrainSet((x, y)), weights="inverse-frequency", seed=3)
    for start in (0, 16):
        inputs, labels = x[start : start + 16], y[start : start + 16].roll(1)
        gradient = batch_gradient(model, *sampler.draw(16), "f1")
        expected = decide(
            model, inputs, labels, gradient, criterion="f1", rule=Rule(scores=True), engine="ghost"
        )
        found = judge.update(inputs, labels).decisions
        assert torch.equal(found.kept, expected.kept)
        torch.testing.assert_close(found.scores, expected.scores)
    assert judge.ledger is None  # no ids, no ledger


def test_a_resumed_run_is_the_same_run_bit_for_bit(tmp_path):
    def parts():
        x, y = data()
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        judge = Agra(model, (x, y.roll(1)), criterion="f1", momentum=0.5, seed=1)
        return x, y.roll(1), model, optimizer, judge

    def go(steps, x, y, model, optimizer, judge):
        for step in steps:
            rows = torch.arange(8) + 8 * (step % 10)
            judge.step(optimizer, x[rows], y[rows], rows)

    whole = parts()
    go(range(30), *whole)
    first = parts()
    go(range(13), *first)
    state = {
        "model": first[2].state_dict(),
        "optimizer": first[3].state_dict(),
        "judge": first[4].state_dict(),
    }
    torch.save(state, tmp_path / "state.pt")
    second = parts()
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    second[2].load_state_dict(state["model"])
    second[3].load_state_dict(state["optimizer"])
    second[4].load_state_dict(state["judge"])
    go(range(13, 30), *second)
    for p, q in zip(whole[2].parameters(), second[2].parameters(), strict=True):
        assert torch.equal(p, q)
    for name, total in whole[4].ledger.totals.items():
        assert torch.equal(total.nan_to_num(), second[4].ledger.totals[name].nan_to_num())
    assert whole[4].ledger.updates == second[4].ledger.updates
    assert torch.equal(whole[4].sampler.draw_rows(5), second[4].sampler.draw_rows(5))


def test_a_state_of_another_training_set_is_refused():
    x, y = data()
    judge, other = Agra(network(), (x, y)), Agra(network(), (x[:40], y[:40]))
    with pytest.raises(ValueError, match="Expected the state of a judge of 40 samples, got 80"):
        other.load_state_dict(judge.state_dict())


@pytest.mark.parametrize("weights", ["uniform", "inverse-frequency", torch.arange(1.0, 81)])
@pytest.mark.parametrize(
    "twin_of", [copy.deepcopy, lambda judge: pickle.loads(pickle.dumps(judge))]
)
def test_a_judge_can_be_copied_and_pickled_and_the_twin_goes_its_own_way(twin_of, weights):
    x, y = data()
    judge = Agra(network(), (x, y), criterion="f1", weights=weights, momentum=0.5)
    judge.update(x[:8], y[:8], torch.arange(8))
    twin = twin_of(judge)
    # more than are drawn ahead
    rows = [judge.sampler.draw_rows(20).tolist() for _ in range(300)]
    assert [twin.sampler.draw_rows(20).tolist() for _ in range(300)] == rows
    assert torch.equal(
        twin.update(x, y.roll(1)).decisions.kept, judge.update(x, y.roll(1)).decisions.kept
    )


def test_a_batch_dropped_whole_moves_nothing():
    x, y = data()
    model = network()
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.5)
    judge = Agra(model, (x, y), threshold=1.0)  # no cosine is above 1
    found = judge.step(optimizer, x[:8], y[:8], torch.arange(8))
    assert found.empty
    assert float(found.loss.detach()) == 0
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    loss = judge.loss(x[:8], y[:8])
    loss.backward()
    assert all(not p.grad.any() for p in model.parameters())


def test_an_alternative_label_and_any_label_and_a_mask():
    x, y = data()
    model, wrong = network(), y.roll(1)
    found = Agra(model, (x, y), alternative_label=0).update(x, wrong).decisions
    assert set(found.labels[found.relabelled].tolist()) == {0}
    found = Agra(model, (x, y), alternative_label="any").update(x, wrong).decisions
    assert found.relabelled.any()
    mask = torch.zeros(len(x), 3, dtype=torch.bool)
    mask[:, 2] = True
    found = Agra(model, (x, y), alternative_label="any").update(x, wrong, mask=mask).decisions
    assert set(found.labels[found.relabelled].tolist()) == {2}


def test_samples_without_a_label_are_dropped_or_relabelled_and_never_drawn():
    x, y = data()
    y = y.clone()
    y[::2] = IGNORE_LABEL
    judge = Agra(network(), (x, y), alternative_label="any")
    found = judge.update(x, y, torch.arange(len(x))).decisions
    assert not found.kept[::2].any()
    assert found.relabelled[::2].any()
    assert (y[judge.sampler.draw_rows(40)] != IGNORE_LABEL).all()
    assert judge.ledger.totals["probability_last"][::2].isnan().all()


def test_soft_labels():
    x, y = data()
    soft = torch.nn.functional.one_hot(y, 3).float() * 0.7 + 0.1
    judge = Agra(network(), (x, soft), weights="inverse-frequency", alternative_label="any")
    found = judge.update(x[:20], soft[:20], torch.arange(20)).decisions
    kept = found.labels[found.kept | found.relabelled]
    torch.testing.assert_close(kept.sum(dim=1), torch.ones(len(kept)))
    given = judge.ledger.totals["probability_last"][:20]
    outputs = judge.model(x[:20]).softmax(dim=1)
    torch.testing.assert_close(given, (outputs * soft[:20]).sum(dim=1).detach())


@pytest.mark.parametrize(
    "model", [nn.Linear(5, 4), nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4))]
)
def test_several_labels_per_sample(model):
    x, _ = data(60)
    generator = torch.Generator().manual_seed(0)
    truth = (x @ torch.randn(5, 4, generator=generator) > 0).float()
    given = truth.clone()
    flipped = torch.rand(60, 4, generator=generator) < 0.1
    given[flipped] = 1 - given[flipped]
    given[0, 0] = torch.nan
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    judge = Agra(model, (x, given), criterion="bce", comparison_size=60, scores=True)
    for _ in range(20):
        for rows in torch.arange(60).split(20):
            judge.step(optimizer, x[rows], given[rows], rows)
    frame = judge.ledger.to_frame()
    assert len(frame) == 240
    assert frame.loc[(0, 0), "drop_rate"] == 1
    rate = judge.ledger.totals["dropped"] / judge.ledger.totals["judged"]
    assert rate[flipped].mean() > rate[~flipped].mean() + 0.1


def test_f1_for_several_labels_by_flag():
    x, _ = data(20)
    labels = (x[:, :3] > 0).float()
    judge = Agra(network(), (x, labels), criterion="f1", multilabel=True)
    assert judge.update(x, labels).decisions.kept.shape == (20, 3)


def test_momentum_averages_comparison_gradients():
    x, y = data()
    model = network()
    judge = Agra(model, (x, y), momentum=0.9, seed=0, scores=True)
    sampler = ComparisonSampler(TrainSet((x, y)), seed=0)
    gradients = [batch_gradient(model, *sampler.draw(80)) for _ in range(3)]
    weights = [0.1 * 0.9 ** (2 - i) for i in range(3)]
    mean = {
        name: sum(w * g[name] for w, g in zip(weights, gradients, strict=True)) / sum(weights)
        for name in gradients[0]
    }
    for _ in range(3):
        found = judge.update(x, y).decisions
    expected = decide(model, x, y, mean, rule=Rule(scores=True), engine="ghost")
    torch.testing.assert_close(found.scores, expected.scores)


def test_the_update_order_does_not_depend_on_the_judge():
    x, y = data()
    judge = Agra(network(), (x, y), seed=0)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    judge.update(x, y, torch.arange(80))
    assert torch.equal(before, torch.get_rng_state())


def test_comparison_batches_are_as_large_as_the_largest_update_batch():
    x, y = data()
    judge = Agra(network(), (x, y))
    drawn = []
    draw = judge.sampler.draw_with_rows
    judge.sampler.draw_with_rows = lambda size: drawn.append(size) or draw(size)
    for size in (10, 30, 7):
        judge.update(x[:size], y[:size])
    assert drawn == [10, 30, 30]


def test_two_inputs_as_a_dict():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(5, 3), nn.Linear(5, 3)

        def forward(self, left, right):
            return self.a(left) + self.b(right)

    x, y = data()
    inputs = {"left": x, "right": x.flip(1)}
    judge = Agra(Two(), (inputs, y))
    found = judge.update({"left": x[:8], "right": x[:8]}, y[:8], torch.arange(8))
    assert found.outputs.shape == (8, 3)


class TestBadInput:
    def test_before_anything_is_computed(self):
        x, y = data()
        model = network()
        with pytest.raises(ValueError, match="Expected `train_set` to hold samples, got an empty"):
            Agra(model, (x[:0], y[:0]))
        with pytest.raises(ValueError, match="Expected `comparison_size` to be at least 1, got 0"):
            Agra(model, (x, y), comparison_size=0)
        with pytest.warns(UserWarning, match="to be at most 80.*got 100; using all of") as caught:
            Agra(model, (x, y), comparison_size=100)
        assert caught[0].filename == __file__
        for size in (2.5, "8", True):
            with pytest.raises(TypeError, match="Expected `comparison_size` to be a whole number"):
                Agra(model, (x, y), comparison_size=size)
        with pytest.raises(ValueError, match=r"`update_loss` to be one of .*did you mean 'f1'"):
            Agra(model, (x, y), update_loss="f2")
        with pytest.raises(ValueError, match=r"`engine` to be one of .*, got None\."):
            Agra(model, (x, y), engine=None)
        with pytest.raises(ValueError, match=r"`weights` to be one of .*, got None\."):
            Agra(model, (x, y), weights=None)
        with pytest.raises(ValueError, match="did you mean 'per-sample'"):
            Agra(model, (x, y), engine="persample")
        with pytest.raises(ValueError, match="did you mean 'inverse-frequency'"):
            Agra(model, (x, y), weights="inverse")
        with pytest.raises(ValueError, match=r"Expected `momentum` to be in \[0, 1\), got 1"):
            Agra(model, (x, y), momentum=1)
        with pytest.raises(ValueError, match=r"Expected `threshold` to be in \[-1, 1\], got 3"):
            Agra(model, (x, y), threshold=3)
        with pytest.raises(ValueError, match="`alternative_label` to be None with several labels"):
            Agra(model, (x, torch.eye(80)[:, :3]), criterion="bce", alternative_label=1)

    def test_an_alternative_label_that_is_no_class(self):
        x, y = data()
        with pytest.raises(ValueError, match=r"`alternative_label` to be in \[0, 2\].*got 3"):
            Agra(network(), (x, y), alternative_label=3).update(x, y)
        with pytest.raises(ValueError, match=r'to be a class index, "any" or None, got .all.'):
            Agra(network(), (x, y), alternative_label="all")

    def test_a_class_that_never_occurs_is_said_once(self):
        x, y = data()
        y = y.clamp(max=1)
        judge = Agra(network(), (x, y))
        with pytest.warns(UserWarning, match=r"got no sample of \[2\]") as caught:
            judge.loss(x, y)  # with ids or without
        assert caught[0].filename == __file__  # the caller's line
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            judge.update(x, y, torch.arange(80))

    def test_ids_outside_of_the_training_set(self):
        x, y = data()
        judge = Agra(network(), (x, y))
        with pytest.raises(ValueError, match=r"Expected `ids` to be in \[0, 79\]"):
            judge.update(x[:2], y[:2], torch.tensor([3, 80]))
        with pytest.raises(ValueError, match="Expected `ids` to be the row numbers of the 2"):
            judge.update(x[:2], y[:2], torch.tensor([3]))

    def test_entries_that_are_no_labels(self):
        x, _ = data(20)
        judge = Agra(nn.Linear(5, 3), (x, (x[:, :3] > 0).float()), criterion="bce")
        with pytest.raises(ValueError, match=r"to be 0, 1, or NaN / -100 for unknown, got 2.0"):
            judge.update(x, torch.full((20, 3), 2.0))
        with pytest.raises(ValueError, match=r"to have the outputs' shape \(20, 3\)"):
            judge.update(x, torch.zeros(20, 2))
        with pytest.raises(ValueError, match="Expected `mask` to be None with several labels"):
            judge.update(x, torch.zeros(20, 3), mask=torch.ones(20, 3, dtype=torch.bool))


def test_under_autocast():
    x, y = data()
    model = network()
    judge = Agra(model, (x, y), criterion="f1", scores=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = judge.update(x, y.roll(1), torch.arange(80))
    found.loss.backward()
    exact = Agra(model, (x, y), criterion="f1", scores=True).update(x, y.roll(1)).decisions
    sure = exact.scores.abs() > 0.05
    assert sure.sum() > 40
    assert torch.equal(found.decisions.kept[sure], exact.kept[sure])


def test_a_compiled_model_is_served():
    x, y = data()
    plain = network()
    compiled = torch.compile(plain, backend="eager")
    found = Agra(compiled, (x, y), seed=0).update(x, y.roll(1)).decisions
    assert torch.equal(found.kept, Agra(plain, (x, y), seed=0).update(x, y.roll(1)).decisions.kept)


def same(left, right):
    if isinstance(left, torch.Tensor):
        return torch.equal(left.nan_to_num(), right.nan_to_num())
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


BAD = {
    "labels out of range": ({"labels": torch.full((16,), 3)}, r"`labels` to be in \[0, 2\].*got 3"),
    "labels below zero": ({"labels": torch.full((16,), -1)}, r"`labels` to be in \[0, 2\].*got -1"),
    "floating labels": ({"labels": torch.zeros(16)}, "`labels` of a single-label criterion to be"),
    "labels in a column": (
        {"labels": torch.zeros(16, 1).long()},
        "Expected two-dimensional `labels`",
    ),
    "too few labels": ({"labels": torch.zeros(15).long()}, "to have one entry per sample"),
    "soft labels": ({"labels": torch.ones(16, 3)}, "rows that sum to one"),
    "labels elsewhere": (
        {"labels": torch.zeros(16).long().to("meta")},
        "`labels` on the device of",
    ),
    "a list of labels": ({"labels": [0] * 16}, r"`labels` to be a tensor, got list; convert it"),
    "an array of labels": (
        {"labels": np.zeros(16, int)},
        r"`labels` to be a tensor, got ndarray; ",
    ),
    "infinite inputs": ({"inputs": torch.full((16, 5), torch.inf)}, "`inputs` to be finite"),
    "inputs elsewhere": ({"inputs": torch.ones(16, 5).to("meta")}, r"model \(cpu\), got meta"),
    "double inputs": (
        {"inputs": torch.ones(16, 5).double()},
        "`inputs` in the type of the model's",
    ),
    "COO inputs": (
        {"inputs": torch.eye(16)[:, :5].to_sparse()},
        "`inputs` to be dense or CSR, got",
    ),
    "too wide inputs": ({"inputs": torch.ones(16, 6)}, "mat1 and mat2 shapes cannot be multiplied"),
    "an array of inputs": ({"inputs": np.ones((16, 5))}, "`inputs` to be a tensor, or a tuple"),
    "ids": ({"ids": torch.arange(16) + 70}, r"`ids` to be in \[0, 79\]"),
    "mask": (
        {"mask": torch.ones(16, 2, dtype=torch.bool)},
        r"`mask` to be booleans of shape \(16, 3",
    ),
}


@pytest.mark.parametrize(("bad", "text"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("first", [True, False])
def test_after_bad_input_the_judge_stands_where_it_stood(bad, text, first):
    x, y = data()
    judge = Agra(network(), (x, y), momentum=0.5)
    if not first:
        judge.update(x[:8], y[:8], torch.arange(8))
    before = copy.deepcopy(judge.state_dict())
    arguments = {"inputs": x[:16], "labels": y[:16], "ids": torch.arange(16), **bad}
    with pytest.raises((ValueError, TypeError, RuntimeError), match=text):
        judge.update(**arguments)
    assert same(judge.state_dict(), before)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_step_that_breaks_off_can_be_done_again(error, momentum):
    def run(*, breaks):
        x, y = data()
        calls = []

        def criterion(outputs, labels):
            calls.append(1)
            if breaks and len(calls) in (6, 8):  # in a comparison batch, and in judging
                raise error("stop")
            return nn.functional.cross_entropy(outputs, labels)

        judge = Agra(network(), (x, y), criterion=criterion, momentum=momentum, scores=True)
        found = []
        while len(found) < 5:
            try:
                found.append(judge.update(x, y.roll(1), torch.arange(80)).decisions.scores)
            except error:
                continue
        return torch.stack(found)

    assert torch.equal(run(breaks=True), run(breaks=False))


def test_weights_that_are_not_finite_do_not_spoil_the_averaged_gradient():
    x, y = data()
    judge = Agra(network(), (x, y), momentum=0.9)
    judge.update(x, y)
    before = copy.deepcopy(judge.state_dict())
    weights = copy.deepcopy(judge.model.state_dict())
    with torch.no_grad():
        judge.model[2].bias[0] = torch.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in parameter '2.bias'"):
        judge.update(x, y)
    judge.model.load_state_dict(weights)
    assert same(judge.state_dict(), before)
    judge.update(x, y)


def test_labels_of_the_training_set_are_checked_before_they_are_drawn():
    x, y = data()
    for labels, text in ((y.float(), "of a single-label criterion"), (y * 3, r"\[0, 2\].*got 6")):
        judge = Agra(network(), (x, labels), comparison_size=1)
        with pytest.raises(ValueError, match=text) as caught:
            judge.update(x[:8], y[:8])
        assert caught.value.__notes__ == ["These are the labels of `train_set`."]


def test_labels_of_items_are_checked_when_they_are_drawn():
    x, y = data()
    items = [(row, float(label)) for row, label in zip(x, y, strict=True)]
    with pytest.raises(
        ValueError, match="`labels` of a single-label criterion to be class indices"
    ):
        Agra(network(), items).update(x[:8], y[:8])


def test_one_output_per_sample_is_refused_with_a_remedy():
    x, y = data()
    model = nn.Linear(5, 1)
    with pytest.raises(ValueError, match="to return at least two outputs per sample for one label"):
        Agra(model, (x, y.clamp(max=1))).update(x[:8], y[:8].clamp(max=1))
    labels = (x[:, :1] > 0).float()
    assert Agra(model, (x, labels), criterion="bce").update(x, labels).decisions.kept.any()


def test_in_inference_mode_nothing_can_be_judged_and_without_gradients_all_can():
    x, y = data()
    judge = Agra(network(), (x, y), scores=True)
    text = r"outside of torch.inference_mode\(\).*use torch.no_grad\(\)"
    with torch.inference_mode(), pytest.raises(ValueError, match=text):
        judge.loss(x, y)
    with torch.no_grad():
        found = judge.update(x, y)
    assert not found.loss.requires_grad
    again = Agra(network(), (x, y), scores=True).update(x, y)
    torch.testing.assert_close(found.decisions.scores, again.decisions.scores)


def test_an_empty_first_batch_does_not_settle_the_engine():
    torch.manual_seed(0)
    x, y = torch.randn(40, 6), torch.arange(40) % 3
    judge = Agra(UsedOutside(3), (x, y), scores=True)
    assert judge.update(x[:0], y[:0]).empty
    found = judge.update(x, y.roll(1))
    assert judge.engine.name != "ghost"  # which would leave out what is used outside of its layer
    other = Agra(judge.model, (x, y), scores=True, engine="per-sample")
    other.update(x[:0], y[:0])
    torch.testing.assert_close(
        found.decisions.scores, other.update(x, y.roll(1)).decisions.scores, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_layers_may_be_frozen_and_unfrozen_on_the_way(momentum):
    torch.manual_seed(0)
    model, x, y = cnn_batch_norm(3).eval(), torch.randn(40, 2, 6, 6), torch.arange(40) % 3
    model.requires_grad_(False)
    model[6].requires_grad_(True)
    judge = Agra(model, (x, y), momentum=momentum, scores=True, seed=1)
    judge.update(x, y.roll(1))
    assert judge.engine.name == "ghost"
    model.requires_grad_(True)
    found = judge.update(x, y.roll(1)).decisions
    assert judge.engine.name != "ghost"  # which does not see through batch norm
    gradient = batch_gradient(model, x, y)  # the whole training set; the average starts anew
    expected = decide(model, x, y.roll(1), gradient, rule=Rule(scores=True)).scores
    torch.testing.assert_close(found.scores, expected, rtol=1e-4, atol=1e-5)
    model[6].requires_grad_(False)
    judge.update(x, y.roll(1))


def test_labels_of_any_integer_type():
    x, y = data()
    expected = Agra(network(), (x, y)).update(x, y.roll(1), torch.arange(80)).decisions
    for dtype in (torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16):
        judge = Agra(network(), (x, y))
        found = judge.update(x, y.roll(1).to(dtype), torch.arange(80)).decisions
        assert torch.equal(found.kept, expected.kept)
        assert found.labels.tolist() == expected.labels.tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("engine", ["auto", "forward", "per-sample"])
def test_half_precision(dtype, engine):
    x, y = data()
    exact = Agra(network(), (x, y), scores=True).update(x, y.roll(1)).decisions
    judge = Agra(network().to(dtype), (x.to(dtype), y), scores=True, engine=engine)
    found = judge.update(x.to(dtype), y.roll(1), torch.arange(80))
    found.loss.backward()
    sure = exact.scores.abs() > 0.05
    assert sure.sum() > 40
    assert torch.equal(found.decisions.kept[sure], exact.kept[sure])


def test_backward_hooks_of_modules_fire_in_the_updates_backward_pass_alone():
    x, y = data()
    for engine in ("auto", "forward", "perturbed", "per-sample"):
        model, fired = network(), []
        model[2].register_full_backward_hook(lambda *_, fired=fired: fired.append(1))
        judge = Agra(model, (x, y), engine=engine, scores=True)
        found = judge.update(x, y.roll(1))
        assert not fired
        found.loss.backward()
        assert fired == [1]


def test_the_error_of_an_update_loss_names_it():
    x, y = data()
    judge = Agra(network(), (x, y), update_loss=nn.CrossEntropyLoss(reduction="none"))
    with pytest.raises(ValueError, match=r"Expected `update_loss` to return a scalar .*\.mean\(\)"):
        judge.loss(x, y)


def test_weights_of_samples_count_in_both_losses():
    x, y = data()
    weights = torch.linspace(0, 2, 80)
    model = network()
    judge = Agra(model, (x, y), sample_weight=weights, seed=3)
    sampler = ComparisonSampler(TrainSet((x, y)), seed=3)
    ids = torch.arange(10, 26)
    found = judge.update(x[ids], y[ids].roll(1), ids)
    inputs, labels, rows = sampler.draw_with_rows(16)
    gradient = batch_gradient(model, inputs, labels, sample_weight=weights[rows])
    expected = torch.autograd.grad(
        nn.functional.cross_entropy(model(inputs), labels, reduction="none")
        @ (weights[rows] / weights[rows].sum()),
        list(model.parameters()),
    )
    for part, own in zip(gradient.values(), expected, strict=True):
        torch.testing.assert_close(part, own)
    decisions = decide(model, x[ids], y[ids].roll(1), gradient)  # weights change no sign
    assert torch.equal(found.decisions.kept, decisions.kept)
    kept = decisions.kept
    losses = nn.functional.cross_entropy(model(x[ids]), y[ids].roll(1), reduction="none")
    own = weights[ids][kept]
    torch.testing.assert_close(found.loss, losses[kept] @ own / own.sum())


def test_weights_of_samples_in_algorithm_2():
    x, y = data()
    matrix = torch.nn.functional.one_hot(y).float()
    weights = torch.linspace(0, 2, 80)
    model = network()
    judge = Agra(model, (x, matrix), criterion="bce", sample_weight=weights, seed=3)
    ids = torch.arange(16)
    found = judge.update(x[ids], matrix[ids], ids)
    kept, own = found.decisions.kept, weights[ids].unsqueeze(1)
    losses = nn.functional.binary_cross_entropy_with_logits(
        model(x[ids]), matrix[ids], reduction="none"
    )
    shares = kept * own
    expected = ((losses * shares).sum(dim=0) / shares.sum(dim=0).clamp(min=1e-9)).mean()
    torch.testing.assert_close(found.loss, expected)


def test_weights_of_samples_that_cannot_work():
    x, y = data()
    with pytest.raises(ValueError, match="Expected `sample_weight` to be 80 finite numbers"):
        Agra(network(), (x, y), sample_weight=torch.ones(3))
    with pytest.raises(ValueError, match="Expected `sample_weight` to be 80 finite numbers"):
        Agra(network(), (x, y), sample_weight=-torch.ones(80))
    judge = Agra(network(), (x, y), sample_weight=torch.ones(80))
    with pytest.raises(
        ValueError, match="Expected `ids` to look up `sample_weight` with, got None"
    ):
        judge.update(x, y)
    only_zeros = Agra(network(), (x, y), sample_weight=torch.zeros(80))
    assert only_zeros.update(x, y, torch.arange(80)).decisions.dropped.all()

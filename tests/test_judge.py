"""The judge in one's own loop: the paper's loop body, resumable, never touching the model."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from agra import IGNORE_LABEL, Agra, ComparisonSampler, Rule, TrainSet, batch_gradient, decide


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
    judge.update(x[:8], y[:8], torch.arange(8))
    with pytest.raises(ValueError, match=r"Expected a ledger of shape \(40,\)"):
        other.load_state_dict(judge.state_dict())


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
    draw = judge.sampler.draw
    judge.sampler.draw = lambda size: drawn.append(size) or draw(size)
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
        with pytest.warns(UserWarning, match="to be at most 80.*got 100; using all of them"):
            Agra(model, (x, y), comparison_size=100)
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
        with pytest.warns(UserWarning, match=r"got no sample of \[2\]"):
            judge.update(x, y, torch.arange(80))
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

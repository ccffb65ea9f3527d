"""The loop: best state, early stop, progress, resume between any two steps."""

import io

import pytest
import torch
from torch import nn

from agra import IGNORE_LABEL, Agra, ModuleLearner, TrainSet
from agra.loop import Loop


def problem(judged=True, size=50, **settings):
    torch.manual_seed(0)
    x = torch.randn(size, 4)
    y = (x[:, 0] > 0).long()
    y[:10] = 1 - y[:10]
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.2), nn.Linear(6, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    train_set = TrainSet((x, y))
    judge = Agra(model, train_set, criterion="f1", seed=0) if judged else None
    learner = ModuleLearner(model, train_set, optimizer, judge=judge)
    return Loop(learner, batch_size=16, **settings)


def weights(loop):
    return torch.cat([p.detach().flatten() for p in loop.learner.model.parameters()])


@pytest.mark.parametrize("judged", [True, False])
def test_history_and_progress(judged):
    seen = []
    loop = problem(judged, epochs=3, progress=seen.append)
    history = loop.run()
    assert [epoch.epoch for epoch in history] == [0, 1, 2]
    assert [(p.epoch, p.step, p.steps) for p in seen] == [
        (e, s, 4) for e in range(3) for s in range(1, 5)
    ]
    for epoch in history:
        assert epoch.kept + epoch.dropped + epoch.relabelled == 50
        assert epoch.score is None
        assert epoch.seconds > 0
    assert loop.best_epoch is None
    if judged:
        assert loop.learner.ledger.updates[:4] != []
        assert sum(k for k, _, _ in loop.learner.ledger.updates) == sum(e.kept for e in history)


def test_without_a_judge_it_is_plain_training():
    loop = problem(judged=False, epochs=2)
    twin = problem(judged=False, epochs=2)
    order = torch.Generator().manual_seed(0)
    torch.manual_seed(9)
    loop.run()
    torch.manual_seed(9)
    for _ in range(2):
        for rows in torch.randperm(50, generator=order).split(16):
            twin.learner.model.train()
            inputs, labels = twin.learner.train_set.rows(rows)
            loss = nn.functional.cross_entropy(twin.learner.model(inputs), labels)
            twin.learner.optimizer.zero_grad()
            loss.backward()
            twin.learner.optimizer.step()
    assert torch.equal(weights(loop), weights(twin))


def test_the_best_state_stays_and_on_ties_the_later_one():
    scores = iter([0.5, 0.9, 0.9, 0.7])
    states = []

    def validate(model):
        assert not model.training
        states.append(torch.cat([p.detach().flatten() for p in model.parameters()]).clone())
        return next(scores)

    loop = problem(epochs=4, validate=validate)
    loop.run()
    assert loop.best_epoch == 2
    assert torch.equal(weights(loop), states[2])


def test_early_stop():
    scores = iter([0.5, 0.9, 0.8, 0.7, 1.0])
    loop = problem(epochs=5, validate=lambda _: next(scores), patience=2)
    assert len(loop.run()) == 4
    assert loop.best_epoch == 1


@pytest.mark.parametrize("stop_at", [1, 3, 4, 5, 7, 11])
def test_an_interrupted_run_resumes_bit_for_bit(stop_at):
    class StopError(Exception):
        pass

    def validate(model):
        return float(sum(p.detach().sum() for p in model.parameters()))

    torch.manual_seed(3)
    whole = problem(epochs=3, validate=validate)
    torch.manual_seed(4)
    history = whole.run()
    saved = io.BytesIO()
    steps = []

    def interrupt(where):
        steps.append(where)
        if len(steps) == stop_at:
            torch.save(part.state_dict(), saved)
            raise StopError

    part = problem(epochs=3, validate=validate, progress=interrupt)
    torch.manual_seed(4)
    with pytest.raises(StopError):
        part.run()
    interrupted_at = torch.get_rng_state()
    resumed = problem(epochs=3, validate=validate)
    torch.manual_seed(99)  # the saved state brings its own
    saved.seek(0)
    resumed.load_state_dict(torch.load(saved, weights_only=True))
    again = resumed.run()
    assert torch.equal(weights(whole), weights(resumed))
    drop_seconds = [(e.epoch, e.loss, e.score, e.kept, e.dropped) for e in history]
    assert drop_seconds == [(e.epoch, e.loss, e.score, e.kept, e.dropped) for e in again]
    for name, total in whole.learner.ledger.totals.items():
        assert torch.equal(total.nan_to_num(), resumed.learner.ledger.totals[name].nan_to_num())
    # and the interrupted loop itself goes on as if nothing had been
    part.progress = None
    torch.set_rng_state(interrupted_at)
    part.run()
    assert torch.equal(weights(whole), weights(part))


def test_samples_without_a_label_teach_nothing_in_plain_training():
    loop = problem(judged=False, epochs=1)
    loop.learner.train_set.labels[:] = IGNORE_LABEL
    before = weights(loop)
    (epoch,) = loop.run()
    assert torch.equal(before, weights(loop))
    assert epoch.kept == 0


def test_a_loss_that_is_not_finite_is_said():
    loop = problem(judged=False, epochs=1)
    with torch.no_grad():
        loop.learner.model[0].weight.fill_(torch.nan)
    with pytest.raises(ValueError, match="Expected a finite loss, got nan in epoch 0, step 0"):
        loop.run()


def test_learners_that_cannot_work():
    x, y = torch.randn(6, 2), torch.tensor([0, 1] * 3)
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="Expected `judge` to judge `model`, got one of another"):
        ModuleLearner(model, (x, y), optimizer, judge=Agra(other, (x, y)))
    with pytest.raises(ValueError, match="Expected `update_loss` and `sample_weight` to be None"):
        ModuleLearner(model, (x, y), optimizer, judge=Agra(model, (x, y)), update_loss="f1")
    with pytest.raises(ValueError, match="Expected `labels` of a single-label criterion to be cl"):
        ModuleLearner(model, (x, y.float()), optimizer)
    with pytest.raises(ValueError, match="Expected `update_loss` to be one of"):
        ModuleLearner(model, (x, y), optimizer, update_loss="f2")


def test_plain_training_on_several_labels_and_on_weights():
    x = torch.randn(8, 2)
    model = nn.Linear(2, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    matrix = torch.tensor([[1.0, 1.0, 0.0]] * 8)
    found = ModuleLearner(model, (x, matrix), optimizer).learn(torch.arange(8))
    assert found > 0
    twin = nn.Linear(2, 3)
    weights = torch.tensor([1.0, 2.0] * 4)
    labels = torch.tensor([0, 1] * 4)
    expected = nn.functional.cross_entropy(twin(x), labels, reduction="none") @ weights / 12
    learner = ModuleLearner(
        twin, (x, labels), torch.optim.SGD(twin.parameters(), lr=0.1), sample_weight=weights
    )
    assert learner.learn(torch.arange(8)) == pytest.approx(expected.item(), rel=1e-5)


def test_numbers_out_of_range():
    with pytest.raises(TypeError, match=r"Expected `epochs` to be a whole number, got 1\.5"):
        problem(epochs=1.5)
    with pytest.raises(ValueError, match="Expected `epochs` to be at least 1, got 0"):
        problem(epochs=0)
    with pytest.raises(ValueError, match="Expected `validate` with patience=2, got None"):
        problem(patience=2)

"""The linear learner equals plain loops, the learner of any module, and itself resumed."""

import functools
import io
import itertools
import random

import pytest
import torch
from scipy import sparse
from torch.nn import functional

from agra import IGNORE_LABEL, Agra, LinearLearner, ModuleLearner, MultilabelRule, Rule
from agra.labels import sample_labelled
from agra.ledger import DROPPED, KEPT, RELABELLED
from agra.linear_judge import Judging
from agra.loop import Loop
from agra.losses import binary_cross_entropy, cross_entropy, multilabel_f1, soft_f1
from test_linear_judge import (
    JudgeByHand,
    data_of,
    layer_and_model,
    numbers,
    same_ledgers,
    single,
)


def adam(parameters, **others):
    return torch.optim.Adam(parameters, lr=0.05, weight_decay=0.02, **others)


def learner_of(model, data, judging=None):
    return LinearLearner(model, data, adam(model.parameters(), fused=True), judging=judging)


def several(size=40, num_labels=3, seed=0):
    """Features, and labels of which some entries are unknown, marked in both ways."""
    x = numbers(size, 5, seed=seed)
    truth = (x @ numbers(5, num_labels, seed=seed + 1) > 0).double()
    drawn = torch.rand(size, num_labels, generator=torch.Generator().manual_seed(seed))
    truth = torch.where(drawn > 0.8, 1 - truth, truth)
    truth[drawn < 0.1], truth[drawn < 0.05] = torch.nan, IGNORE_LABEL
    return x, truth


def same_weights(model, layer):
    torch.testing.assert_close(model.weight, layer.weight.T, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(model.bias, layer.bias, rtol=1e-9, atol=1e-9)


def state_of(learner):
    """Weights and the optimizer's state as they are now."""
    state = {name: part.clone() for name, part in learner.model.state_dict().items()}
    for place, parts in learner.optimizer.state_dict()["state"].items():
        state |= {(place, name): part.clone() for name, part in parts.items()}
    return state


def same_state(one, other):
    assert set(one) == set(other)
    for name, part in one.items():
        assert torch.equal(part, other[name]), name


def update_loss(outputs, labels, weights=None):
    """Cross-entropy, or the masked BCE label by label, over what is known."""
    weights = torch.ones(len(labels)).double() if weights is None else weights
    known = ~(labels.isnan() | (labels == IGNORE_LABEL))
    if labels.ndim == 1:
        losses = functional.cross_entropy(outputs[known], labels[known], reduction="none")
        return (losses * weights[known]).sum() / weights[known].sum()
    total = 0 * outputs.sum()
    for k in range(labels.shape[1]):
        own = known[:, k]
        losses = functional.binary_cross_entropy_with_logits(
            outputs[own, k], labels[own, k], reduction="none"
        )
        if weights[own].any():
            total = total + (losses * weights[own]).sum() / weights[own].sum()
    return total / labels.shape[1]


# equal to the reference, step by step


class LearnerByHand:
    """Judges as the reference does, and learns by autograd and PyTorch's Adam."""

    def __init__(self, layer, x, data, judging):
        self.layer, self.x, self.data = layer, x, data
        self.judge = JudgeByHand(layer, x, data, judging)
        self.optimizer = adam(layer.parameters())
        size = tuple(data.labels.shape)
        names = ("judged", "kept", "dropped", "relabelled", "score_sum", "probability_sum")
        self.totals = {name: torch.zeros(size, dtype=torch.float64) for name in names}
        self.totals["new_label"] = torch.full(size, -1.0, dtype=torch.float64)
        self.updates = []

    def learn(self, rows):
        """The loss of one update by hand, or None."""
        found = self.judge.judge(rows)
        # what could go either way would make the two runs part: such data say nothing
        assert found.clear.all()
        outputs = self.layer(self.x[rows])
        self.note(rows, found, outputs.detach())
        if (found.verdicts == DROPPED).all():
            return None
        weights = self.data.weights
        loss = update_loss(outputs, found.labels, None if weights is None else weights[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def note(self, rows, found, outputs):
        kinds = (("kept", KEPT), ("dropped", DROPPED), ("relabelled", RELABELLED))
        given = self.data.labels[rows]
        if given.ndim == 1:
            probabilities = outputs.softmax(dim=1)[torch.arange(len(rows)), given.clamp(min=0)]
        else:
            probabilities = torch.where(given == 1, outputs.sigmoid(), 1 - outputs.sigmoid())
        unknown = given.isnan() | (given == IGNORE_LABEL)
        self.totals["judged"][rows] += 1
        self.totals["score_sum"][rows] += found.scores.nan_to_num()
        self.totals["probability_sum"][rows] += probabilities.masked_fill(unknown, 0)
        for name, verdict in kinds:
            self.totals[name][rows] += found.verdicts == verdict
        if given.ndim == 1:
            changed = found.verdicts == RELABELLED
            self.totals["new_label"][rows[changed]] = found.labels[changed].double()
        self.updates.append(tuple(int((found.verdicts == verdict).sum()) for _, verdict in kinds))


def run_beside_the_reference(x, data, judging, batches, num_outputs, seed=3):
    layer, model = layer_and_model(x.shape[1], num_outputs, seed)
    learner, by_hand = learner_of(model, data, judging), LearnerByHand(layer, x, data, judging)
    for rows in batches:
        found, expected = learner.learn(rows), by_hand.learn(rows)
        assert (found is None) == (expected is None)
        if found is not None:
            assert found == pytest.approx(expected, rel=1e-9)
        same_weights(model, layer)
    ledger = learner.ledger
    assert ledger.updates == by_hand.updates
    for name, total in by_hand.totals.items():
        torch.testing.assert_close(ledger.totals[name].double(), total, rtol=1e-5, atol=1e-5)
    return by_hand


def own_criterion(outputs, labels, weights=None):
    """A user's own, of the whole batch: the mean squared distance of probabilities, bent."""
    truth = functional.one_hot(labels, outputs.shape[1]).to(outputs.dtype)
    distances = (outputs.softmax(dim=1) - truth).square().sum(dim=1)
    mean = distances.mean() if weights is None else (distances * weights).sum() / weights.sum()
    return mean + mean**2


CRITERIA = {"cross-entropy": cross_entropy, "f1": soft_f1, "own": own_criterion}
CHOICES = {
    "kind": ["dense", "csr"],
    "criterion": list(CRITERIA),
    "weights": ["uniform", "inverse-frequency"],
    "alternative": [None, 1, "any", "any-masked", "1-masked"],
    "threshold": [0.0, 0.1],
    "momentum": [0.0, 0.9],
    "compare_bias": [False, True],
    "num_classes": [2, 10],
    "unlabelled": [False, True],
    "weighted": [False, True],
}
CHOSEN = random.Random(15).sample(list(itertools.product(*CHOICES.values())), 28)


def in_words(choice):
    return "-".join(getattr(part, "__name__", str(part)) for part in choice)  # no addresses


def test_every_pair_of_choices_is_tried():
    for (one, first), (two, second) in itertools.combinations(enumerate(CHOICES.values()), 2):
        tried = {(choice[one], choice[two]) for choice in CHOSEN}
        assert tried == set(itertools.product(first, second))


@pytest.mark.parametrize("choice", CHOSEN, ids=in_words)
def test_whole_steps_equal_the_reference(choice):
    choice = dict(zip(CHOICES, choice, strict=True))
    num_classes, size = choice["num_classes"], 20
    generator = torch.Generator().manual_seed(5)
    x = numbers(size, 8, density=0.6, seed=7)
    x[4], x[:, 6] = 0, 0
    labels = torch.randint(num_classes, (size,), generator=generator)
    if choice["unlabelled"]:
        labels[::6] = IGNORE_LABEL
    weights = torch.randint(4, (size,), generator=generator).double() / 2
    mask = torch.rand(size, num_classes, generator=generator) < 0.6
    alternative = choice["alternative"]
    masked = str(alternative).endswith("-masked")
    alternative = {"any-masked": "any", "1-masked": 1}.get(alternative, alternative)
    data = data_of(
        x,
        labels,
        weights if choice["weighted"] else None,
        mask if masked else None,
        csr=choice["kind"] == "csr",
    )
    judging = Judging(
        criterion=CRITERIA[choice["criterion"]],
        rule=Rule(alternative, choice["threshold"]),
        weights=choice["weights"],
        momentum=choice["momentum"],
        compare_bias=choice["compare_bias"],
        seed=11,
    )
    order = torch.randperm(size, generator=generator)
    batches = [*order.split(8), order[:6]]  # 8, 8, 4, 6
    by_hand = run_beside_the_reference(x, data, judging, batches, num_classes)
    assert any(kept for kept, _, _ in by_hand.updates)
    assert any(dropped for _, dropped, _ in by_hand.updates)


CHOICES_OF_SEVERAL = {
    "kind": ["dense", "csr"],
    "criterion": [binary_cross_entropy, multilabel_f1],
    "threshold": [0.0, 0.1],
    "momentum": [0.0, 0.9],
    "compare_bias": [False, True],
    "weighted": [False, True],
}
CHOSEN_OF_SEVERAL = random.Random(3).sample(
    list(itertools.product(*CHOICES_OF_SEVERAL.values())), 12
)


def test_every_pair_of_choices_is_tried_with_several_labels():
    values = enumerate(CHOICES_OF_SEVERAL.values())
    for (one, first), (two, second) in itertools.combinations(values, 2):
        tried = {(choice[one], choice[two]) for choice in CHOSEN_OF_SEVERAL}
        assert tried == set(itertools.product(first, second))


@pytest.mark.parametrize("choice", CHOSEN_OF_SEVERAL, ids=in_words)
def test_whole_steps_with_several_labels_equal_the_reference(choice):
    kind, criterion, threshold, momentum, compare_bias, weighted = choice
    x, labels = several(16, seed=4)
    x = x * (numbers(16, 5, density=0.7, seed=8) != 0)
    x[3], labels[5] = 0, torch.nan  # a row without a feature, and one without a label
    weights = torch.tensor([1.0, 0.0, 2.0, 0.5] * 4).double() if weighted else None
    data = data_of(x, labels, weights, csr=kind == "csr")
    judging = Judging(
        criterion, MultilabelRule(threshold), momentum=momentum, compare_bias=compare_bias, seed=2
    )
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    batches = [*order.split(6), order[4:9]]  # 6, 6, 4, 5
    by_hand = run_beside_the_reference(x, data, judging, batches, 3)
    kept, dropped, relabelled = (sum(column) for column in zip(*by_hand.updates, strict=True))
    assert kept > 10
    assert dropped > 10
    assert relabelled == 0


@pytest.mark.parametrize("comparison_size", [None, 7])
@pytest.mark.parametrize("criterion", [cross_entropy, soft_f1])
def test_batches_of_one_sample_equal_the_reference(criterion, comparison_size):
    x, labels = single(20, seed=2)
    judging = Judging(criterion, Rule("any"), comparison_size=comparison_size, seed=5)
    batches = torch.arange(20).split(1)
    run_beside_the_reference(x, data_of(x, labels), judging, batches, 3)


def test_a_training_set_of_one_sample_equals_the_reference():
    x, labels = numbers(1, 4), torch.tensor([1])
    batches = [torch.tensor([0])] * 3
    by_hand = run_beside_the_reference(x, data_of(x, labels), Judging(), batches, 2)
    assert by_hand.updates == [(1, 0, 0)] * 3


def test_the_last_smaller_batch_is_held_against_a_comparison_batch_as_large_as_ever():
    x, labels = single(20, seed=6)
    batches = torch.arange(20).split(8)
    by_hand = run_beside_the_reference(x, data_of(x, labels), Judging(soft_f1), batches, 3)
    sizes = [len(batch) for batch in batches]
    assert sizes == [8, 8, 4]
    assert by_hand.judge.largest == 8


def test_the_learner_is_set_level():
    """The same steps with the loss of each sample alone come out elsewhere."""

    def alone(outputs, labels):
        parts = [soft_f1(outputs[t : t + 1], labels[t : t + 1]) for t in range(len(outputs))]
        return torch.stack(parts).mean()

    x, labels = single(32, num_classes=2, seed=6)
    layer, model = layer_and_model(5, 2, 3)
    learner = learner_of(model, data_of(x, labels), Judging(soft_f1, seed=0))
    for rows in torch.arange(32).split(16):
        learner.learn(rows)
    by_hand = LearnerByHand(layer, x, data_of(x, labels), Judging(alone, seed=0))
    for rows in torch.arange(32).split(16):
        by_hand.learn(rows)
    assert not torch.allclose(model.weight, layer.weight.T, atol=1e-3)


# equal to the learner of any module


def module_loop(x, labels, judging, csr, **settings):
    layer = layer_and_model(x.shape[1], settings.pop("num_outputs"))[0]
    train_set = (sparse.csr_array(x.numpy()) if csr else x, labels)
    rule = judging.rule
    judge = Agra(
        layer,
        train_set,
        criterion=judging.criterion,
        weights=judging.weights,
        alternative_label=getattr(rule, "alternative_label", None),
        threshold=rule.threshold,
        comparison_size=judging.comparison_size,
        parameters="*" if judging.compare_bias else None,
        momentum=judging.momentum,
        scores=True,
        seed=judging.seed,
    )
    learner = ModuleLearner(layer, train_set, adam(layer.parameters()), judge=judge)
    return Loop(learner, **settings)


OF_ONE_LABEL = [
    Judging(seed=4),
    Judging(soft_f1, weights="inverse-frequency", seed=4),
    Judging(soft_f1, Rule("any"), momentum=0.9, comparison_size=40, seed=4),
    Judging(cross_entropy, Rule(1, threshold=0.05), compare_bias=True, comparison_size=9, seed=4),
    Judging(cross_entropy, Rule(threshold=-0.1), momentum=0.5, compare_bias=True, seed=4),
]
OF_SEVERAL = [
    Judging(binary_cross_entropy, MultilabelRule(), seed=4),
    Judging(multilabel_f1, MultilabelRule(0.05), momentum=0.9, compare_bias=True, seed=4),
]


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("judging", [*OF_ONE_LABEL, *OF_SEVERAL])
def test_the_learner_of_any_module_learns_the_same(judging, csr):
    x, labels = several(90) if judging in OF_SEVERAL else single(90)
    x = x * (numbers(90, 5, density=0.7, seed=8) != 0)
    if labels.ndim == 1:
        labels[::4], labels[1::17] = (labels[::4] + 1) % 3, IGNORE_LABEL
    settings = {"epochs": 3, "batch_size": 16, "seed": 5}
    slow = module_loop(x, labels, judging, csr, num_outputs=3, **settings)
    layer, model = slow.learner.model, layer_and_model(5, 3)[1]
    fast = Loop(learner_of(model, data_of(x, labels, csr=csr), judging), **settings)
    for one, two in zip(fast.run(), slow.run(), strict=True):
        assert one.loss == pytest.approx(two.loss, rel=1e-9)
        assert (one.kept, one.dropped, one.relabelled) == (two.kept, two.dropped, two.relabelled)
    same_weights(model, layer)
    found, expected = fast.learner.ledger, slow.learner.ledger
    assert found.updates == expected.updates
    for epoch, twin in zip(found.epochs, expected.epochs, strict=True):
        assert torch.equal(epoch["verdict"], twin["verdict"])
        for name in ("score", "probability"):
            torch.testing.assert_close(epoch[name], twin[name], equal_nan=True)
    for name, total in found.totals.items():
        torch.testing.assert_close(total, expected.totals[name], equal_nan=True)
    kept, judged = int(found.totals["kept"].sum()), int(found.totals["judged"].sum())
    assert 0.1 < kept / judged < 0.9  # there was something to decide


# without a judge


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("make", [single, several])
def test_without_a_judge_it_is_plain_training(make, csr, weighted):
    x, labels = make(50)
    if labels.ndim == 1:
        labels[::7] = IGNORE_LABEL
    weights = torch.arange(50).remainder(4).double() if weighted else None
    layer, model = layer_and_model(5, 3)
    learner = learner_of(model, data_of(x, labels, weights, csr=csr))
    optimizer, order = adam(layer.parameters()), torch.Generator().manual_seed(0)
    losses = []
    for rows in itertools.chain(*(torch.randperm(50, generator=order).split(16) for _ in "ab")):
        own = None if weights is None else weights[rows]
        loss = update_loss(layer(x[rows]), labels[rows], own)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    first, second = Loop(learner, epochs=2, batch_size=16).run()
    same_weights(model, layer)
    assert first.loss == pytest.approx(sum(losses[:4]) / 4, rel=1e-9)
    assert second.loss == pytest.approx(sum(losses[4:]) / 4, rel=1e-9)
    learned = int(sample_labelled(labels).sum())
    assert [(e.kept, e.dropped, e.relabelled) for e in (first, second)] == [(learned, 0, 0)] * 2
    assert learner.ledger is None


def test_any_optimizer_will_do():
    x, labels = single(32)
    layer, model = layer_and_model(5, 3, 1)
    optimizers = [
        torch.optim.SGD(part.parameters(), lr=0.3, momentum=0.9, nesterov=True, weight_decay=0.1)
        for part in (layer, model)
    ]
    learner = LinearLearner(model, data_of(x, labels), optimizers[1])
    for rows in torch.arange(32).split(8):
        learner.learn(rows)
        optimizers[0].zero_grad()
        functional.cross_entropy(layer(x[rows]), labels[rows]).backward()
        optimizers[0].step()
    same_weights(model, layer)


# batches that move nothing


@pytest.mark.parametrize("labels_of", [single, several])
def test_a_batch_dropped_whole_moves_nothing(labels_of):
    x, labels = labels_of(40)
    labels[16:32] = IGNORE_LABEL
    model = layer_and_model(5, 3, 1)[1]
    rule = MultilabelRule() if labels.ndim == 2 else Rule()
    criterion = binary_cross_entropy if labels.ndim == 2 else cross_entropy
    learner = learner_of(model, data_of(x, labels), Judging(criterion, rule))
    assert learner.learn(torch.arange(16)) > 0  # now Adam has momenta that could go on moving
    before = state_of(learner)
    assert learner.learn(torch.arange(16, 32)) is None
    same_state(before, state_of(learner))
    assert learner.ledger.updates[1] == (0, labels[16:32].numel(), 0)
    assert learner.learn(torch.arange(32, 40)) > 0
    assert not torch.equal(before["weight"], learner.model.weight)


def test_a_threshold_that_nobody_passes_moves_nothing():
    x, labels = single(40)
    model = layer_and_model(5, 3, 1)[1]
    learner = learner_of(model, data_of(x, labels), Judging(rule=Rule("any", threshold=1.0)))
    before = state_of(learner)
    (epoch,) = Loop(learner, epochs=1, batch_size=16).run()
    same_state(before, state_of(learner))
    assert (epoch.kept, epoch.dropped, epoch.relabelled) == (0, 40, 0)
    assert epoch.loss != epoch.loss  # no update, no mean


def test_without_a_judge_a_batch_without_labels_moves_nothing():
    x, labels = single(20)
    labels[10:] = IGNORE_LABEL
    learner = learner_of(layer_and_model(5, 3, 1)[1], data_of(x, labels))
    assert learner.learn(torch.arange(10)) > 0
    before = state_of(learner)
    assert learner.learn(torch.arange(10, 20)) is None
    same_state(before, state_of(learner))
    assert learner.counts() == (10, 0, 0)


@pytest.mark.parametrize("labels_of", [single, several])
def test_a_judged_batch_in_which_every_weight_is_zero_moves_nothing(labels_of):
    x, labels = labels_of(40)
    weights = torch.ones(40, dtype=torch.float64)
    weights[16:32] = 0
    rule = MultilabelRule() if labels.ndim == 2 else Rule("any")
    criterion = multilabel_f1 if labels.ndim == 2 else soft_f1
    model = layer_and_model(5, 3, 1)[1]
    learner = learner_of(model, data_of(x, labels, weights), Judging(criterion, rule))
    assert learner.learn(torch.arange(16)) > 0
    before = state_of(learner)
    assert learner.learn(torch.arange(16, 32)) is None
    same_state(before, state_of(learner))
    assert (learner.ledger.totals["dropped"][16:32] == 1).all()
    assert (learner.ledger.totals["score_last"][16:32].nan_to_num() == 0).all()


def test_who_weighs_nothing_might_as_well_not_be_there():
    """Any labels and features on them, the others learn the same."""
    x, labels = single(40)
    weights = torch.ones(40, dtype=torch.float64)
    weights[::3] = 0
    models = []
    for changed in (False, True):
        own_x, own_labels = x.clone(), labels.clone()
        if changed:
            own_x[::3] *= -5
            own_labels[::3] = (own_labels[::3] + 1) % 3
        model = layer_and_model(5, 3, 1)[1]
        judging = Judging(soft_f1, weights="inverse-frequency", momentum=0.5)
        learner = learner_of(model, data_of(own_x, own_labels, weights), judging)
        Loop(learner, epochs=2, batch_size=16).run()
        models.append(model)
    assert models[0].weight.abs().max() > 0.1
    torch.testing.assert_close(models[0].weight, models[1].weight, rtol=1e-9, atol=1e-12)


# resuming


class StopError(Exception):
    pass


def resumable(name, **settings):
    x, labels = several(151) if name == "several" else single(151)
    weights = torch.arange(151).remainder(3).double() if name == "weighted" else None
    judging = {
        "single": Judging(soft_f1, Rule("any"), weights="inverse-frequency", momentum=0.9),
        "weighted": Judging(cross_entropy, comparison_size=9, compare_bias=True),
        "several": Judging(multilabel_f1, MultilabelRule(0.02), momentum=0.5),
        "plain": None,
    }[name]
    data = data_of(x, labels, weights, csr=name != "several")
    learner = learner_of(layer_and_model(5, 3)[1], data, judging)

    def validate(model):
        return float(model.weight.sum())

    # 76 updates an epoch, more than are written into the ledger at a time, the last of one sample
    return Loop(learner, epochs=2, batch_size=2, validate=validate, **settings)


RUNS = ["single", "weighted", "several", "plain"]


@functools.cache
def whole_run(name):
    whole = resumable(name)
    whole.run()
    return whole


@pytest.mark.parametrize("stop_at", [1, 63, 64, 65, 75, 76, 77, 151])
@pytest.mark.parametrize("name", RUNS)
def test_an_interrupted_run_resumes_bit_for_bit(name, stop_at):
    whole = whole_run(name)
    saved, steps = io.BytesIO(), itertools.count(1)

    def interrupt(where):
        if next(steps) == stop_at:
            torch.save(part.state_dict(), saved)
            raise StopError

    part = resumable(name, progress=interrupt)
    with pytest.raises(StopError):
        part.run()
    resumed = resumable(name)
    torch.manual_seed(99)  # the saved state brings its own
    saved.seek(0)
    resumed.load_state_dict(torch.load(saved, weights_only=True))
    part.progress = None  # and the interrupted loop itself goes on as if nothing had been
    for again in (resumed, part):
        again.run()
        same_state(state_of(whole.learner), state_of(again.learner))
        assert again.best_epoch == whole.best_epoch
        for one, two in zip(again.history, whole.history, strict=True):
            assert (one.loss, one.score) == (two.loss, two.score)
            assert (one.kept, one.dropped, one.relabelled) == (
                two.kept,
                two.dropped,
                two.relabelled,
            )
        if name != "plain":
            # but for the last digit, which depends on what is computed at once
            same_ledgers(again.learner.ledger, whole.learner.ledger, rtol=1e-5)


# manners


def test_nothing_of_the_data_is_modified_and_torchs_random_state_stays():
    x, labels = single(40)
    labels[::5] = IGNORE_LABEL
    weights = torch.arange(40).remainder(3).double()
    mask = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)) < 0.5
    parts = [x, labels, weights, mask]
    before = [part.clone() for part in parts]
    judging = Judging(soft_f1, Rule("any"), momentum=0.5)
    learner = learner_of(layer_and_model(5, 3)[1], data_of(x, labels, weights, mask), judging)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    Loop(learner, epochs=2, batch_size=16).run()
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(one, two) for one, two in zip(parts, before, strict=True))


def test_the_order_of_the_comparison_batches_is_the_judges_own():
    x, labels = single(40)
    models = []
    for seed in (0, 0, 1):
        model = layer_and_model(5, 3)[1]
        learner = learner_of(model, data_of(x, labels), Judging(seed=seed))
        Loop(learner, epochs=2, batch_size=4).run()
        models.append(model)
    assert torch.equal(models[0].weight, models[1].weight)
    assert not torch.equal(models[0].weight, models[2].weight)


def test_weights_that_broke_are_said():
    x, labels = single(20)
    for judging, text in ((None, "Expected a finite loss, got nan"), (Judging(), "NaN or inf")):
        learner = learner_of(layer_and_model(5, 3, 1)[1], data_of(x, labels), judging)
        with torch.no_grad():
            learner.model.weight[2, 1] = torch.nan
        with pytest.raises(ValueError, match=text):
            Loop(learner, epochs=1).run()


def test_wrong_labels_are_dropped_or_put_right_and_the_rest_is_learned():
    x, truth = single(120, seed=3)
    x[torch.arange(120), truth] += 2.0
    labels = truth.clone()
    labels[:30] = (labels[:30] + 1) % 3
    for rule in (Rule(), Rule("any")):
        data = data_of(x, labels, csr=True)
        model = layer_and_model(5, 3)[1]
        learner = learner_of(model, data, Judging(soft_f1, rule, weights="inverse-frequency"))
        Loop(learner, epochs=15, batch_size=16).run()
        ledger = learner.ledger
        assert (ledger.totals["judged"] == 15).all()
        assert len(ledger.epochs) == 15
        unkept = 1 - ledger.totals["kept"] / 15
        assert unkept[:30].mean() > unkept[30:].mean() + 0.3
        assert (model(data.rows).argmax(dim=1) == truth).double().mean() > 0.85
    found = ledger.totals["new_label"][:30]
    assert (found == truth[:30]).double().mean() > 0.8

"""The linear judge equals the plain-loops reference, batch after batch."""

import itertools
import random
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import Tensor, nn

import reference
from agra import IGNORE_LABEL, MultilabelRule, Rule
from agra.ledger import DROPPED, KEPT, RELABELLED
from agra.linear_judge import Judging, LinearJudge
from agra.linear_model import LinearData, LinearModel
from agra.losses import binary_cross_entropy, cross_entropy, multilabel_f1, soft_f1
from agra.rows import as_rows
from agra.sampling import RowSampler

NAMES = {"kept": KEPT, "dropped": DROPPED, "relabelled": RELABELLED}
repeatable = settings(max_examples=25, deadline=None, derandomize=True)


# the judge by hand, on a plain linear layer with autograd


class Verdicts(NamedTuple):
    """What became of a batch, shaped as its labels."""

    labels: Tensor
    verdicts: Tensor
    scores: Tensor  # under the given labels; NaN where there is none
    clear: Tensor  # where rounding cannot change the verdict


class JudgeByHand:
    """Judges one batch after the other with the loops of the reference."""

    def __init__(self, layer, x, data, judging):
        self.layer, self.x, self.data, self.judging = layer, x, data, judging
        drawable = data.labels.clone()
        if data.weights is not None:
            drawable[data.weights == 0] = IGNORE_LABEL
        self.sampler = RowSampler(drawable, len(x), weights=judging.weights, seed=judging.seed)
        self.parameters = [layer.weight, layer.bias][: 1 + judging.compare_bias]
        self.gradients, self.largest = [], 0

    def judge(self, rows):
        gradient = self.comparison_gradient(len(rows))
        several = self.data.labels.ndim == 2
        return (self.judge_entries if several else self.judge_samples)(rows, gradient)

    def comparison_gradient(self, count):
        self.largest = max(self.largest, count)
        size = self.judging.comparison_size or min(self.largest, self.sampler.num_rows)
        self.gradients.append(self.gradient_of(self.sampler.draw(size)[0]))
        past = torch.arange(len(self.gradients), dtype=torch.float64).flip(0)
        shares = self.judging.momentum**past  # 0 ** 0 = 1: without momentum just the newest
        parts = zip(shares / shares.sum(), self.gradients, strict=True)
        return sum(share * gradient for share, gradient in parts)

    def gradient_of(self, rows):
        """Line 4 of Algorithm 1; for several labels one gradient per label, (K, parameters)."""
        batch = self.layer, self.x[rows], self.data.labels[rows]
        criterion = self.criterion(rows)
        if self.data.labels.ndim == 1:
            return reference.comparison_gradient(*batch, criterion, self.parameters)
        labels = range(self.data.labels.shape[1])
        return torch.stack(
            [reference.label_gradient(*batch, k, criterion, self.parameters) for k in labels]
        )

    def criterion(self, rows):
        """The criterion of a batch, each sample with its weight."""
        criterion = self.judging.criterion
        if self.data.weights is None:
            return criterion
        weights, known = self.data.weights[rows], self.data.labels[rows] != IGNORE_LABEL

        def weighted(outputs, labels):
            # the reference asks for the whole batch, or for the samples with a given label
            own = weights if len(outputs) == len(weights) else weights[known]
            return criterion(outputs, labels, own) if bool(own.any()) else 0 * outputs.sum()

        return weighted

    def judge_samples(self, rows, gradient):
        labels, rule, mask = self.data.labels[rows], self.judging.rule, self.data.mask
        one = rule.alternative_label
        others = range(self.layer.out_features) if one == "any" else () if one is None else (one,)
        found = reference.judge(
            self.layer,
            self.x[rows],
            labels,
            gradient,
            self.criterion(rows),
            self.parameters,
            others=others,
            threshold=rule.threshold,
            mask=None if mask is None else mask[rows],
        )
        scores = torch.tensor([float(part[2][0]) for part in found])
        return Verdicts(
            torch.tensor([int(part[0]) for part in found]),
            torch.tensor([NAMES[part[1]] for part in found]),
            scores.masked_fill(labels == IGNORE_LABEL, torch.nan),
            torch.tensor(
                [
                    is_clear(dict(zip([int(label), *others], part[2], strict=True)), rule.threshold)
                    for label, part in zip(labels, found, strict=True)
                ]
            ),
        )

    def judge_entries(self, rows, gradients):
        labels, threshold = self.data.labels[rows], self.judging.rule.threshold
        criterion = self.criterion(rows)
        outputs = self.layer(self.x[rows]).detach()
        scores = torch.zeros_like(outputs)
        for t, k in itertools.product(*map(range, outputs.shape)):
            mixed = outputs.clone()
            mixed[t, k] = self.layer(self.x[rows[t : t + 1]])[0, k]
            own = reference.gradient(criterion(mixed, labels), self.parameters)
            scores[t, k] = reference.similarity(own, gradients[k])
        known = ~(labels.isnan() | (labels == IGNORE_LABEL))
        kept = (scores > threshold) & known
        return Verdicts(
            labels.masked_fill(~kept, IGNORE_LABEL),
            torch.where(kept, KEPT, DROPPED),
            scores.masked_fill(~known, torch.nan),
            ((scores - threshold).abs() > 1e-9) | (scores == 0),
        )


def is_clear(scores, threshold):
    """Whether no candidate's score is at the threshold, nor two of those above it alike.

    A score of 0 is that of a zero gradient, or of rows that share no feature: no rounding there.
    """
    values = [float(score) for score in scores.values()]
    above = [value for value in values if value > threshold]
    return all(value == 0 or abs(value - threshold) > 1e-9 for value in values) and all(
        abs(one - other) > 1e-9 for one, other in itertools.combinations(above, 2)
    )


# problems


def numbers(size, width, density=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, width, generator=generator, dtype=torch.float64)
    return x * (torch.rand(size, width, generator=generator) < density)


def layer_and_model(width, num_outputs, seed=None):
    """A linear layer and a linear model of the same weights: zero, or drawn at random."""
    layer, model = nn.Linear(width, num_outputs).double(), LinearModel(width, num_outputs).double()
    generator = torch.Generator().manual_seed(seed or 0)
    for part in layer.parameters():
        nn.init.normal_(part, std=0.0 if seed is None else 0.7, generator=generator)
    model.load_state_dict({"weight": layer.weight.T, "bias": layer.bias})
    return layer, model


def data_of(x, labels, weights=None, mask=None, *, csr=False):
    rows = as_rows(sparse.csr_array(x.numpy()) if csr else x, torch.float64)
    return LinearData(rows, labels, weights, mask)


def single(size=40, num_classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(num_classes, (size,), generator=generator)
    centres = torch.randn(num_classes, 5, generator=generator, dtype=torch.float64)
    return centres[labels] + numbers(size, 5, seed=seed + 1), labels


def judge_of(x, data, judging=None, seed=1):
    num_outputs = data.labels.shape[1] if data.labels.ndim == 2 else int(data.labels.max()) + 1
    model = layer_and_model(x.shape[1], num_outputs, seed)[1]
    return LinearJudge(model, data, Judging() if judging is None else judging)


def check_ledger(ledger, rows, expected):
    """The last verdicts and scores of some rows, where the verdict is clear."""
    found = ledger.epochs[-1]["verdict"][rows]
    assert torch.equal(found[expected.clear].long(), expected.verdicts[expected.clear])
    scores = ledger.totals["score_last"][rows].double()
    torch.testing.assert_close(scores, expected.scores.double(), rtol=0, atol=1e-6, equal_nan=True)


# equal to the reference on whatever is drawn


@repeatable
@given(
    size=st.integers(1, 7),
    width=st.integers(1, 5),
    num_classes=st.integers(2, 4),
    density=st.sampled_from([0.3, 0.7, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_verdicts_equal_those_of_the_reference(size, width, num_classes, density, seed):
    choose = random.Random(seed).choice  # more variety than by drawing every choice
    x = numbers(size, width, density, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    labels = torch.randint(num_classes, (size,), generator=generator)
    labels[1:][torch.rand(size - 1, generator=generator) < 0.2] = IGNORE_LABEL
    weights = torch.randint(4, (size,), generator=generator).double() / 2
    weights[0] = 1.0  # somebody must be there to draw
    mask = torch.rand(size, num_classes, generator=generator) < 0.6
    weights = choose([None, weights])
    mask = choose([None, mask])
    judging = Judging(
        criterion=choose([cross_entropy, soft_f1]),
        rule=Rule(
            choose([None, 0, 1, "any"]),
            choose([0.0, 0.1, -0.2]),
        ),
        weights=choose(["uniform", "inverse-frequency"]),
        comparison_size=choose([None, 1]),
        momentum=choose([0.0, 0.7]),
        compare_bias=choose([False, True]),
        seed=seed,
    )
    problem = data_of(x, labels, weights, mask, csr=choose([False, True]))
    layer, model = layer_and_model(width, num_classes, seed)
    judge, by_hand = LinearJudge(model, problem, judging), JudgeByHand(layer, x, problem, judging)
    for count in (size, choose(range(1, size + 1))):
        rows = torch.randperm(size, generator=generator)[:count]
        batch, outputs, learned = judge.decide(rows)
        expected = by_hand.judge(rows)
        assert torch.equal(batch.labels, labels[rows])
        torch.testing.assert_close(outputs, layer(x[rows]).detach(), rtol=1e-9, atol=1e-12)
        assert torch.equal(learned[expected.clear], expected.labels[expected.clear])
        check_ledger(judge.ledger(), rows, expected)


@repeatable
@given(
    size=st.integers(1, 5),
    width=st.integers(1, 5),
    num_labels=st.integers(1, 3),
    density=st.sampled_from([0.3, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_entries_equal_those_of_the_reference(size, width, num_labels, density, seed):
    choose = random.Random(seed).choice  # more variety than by drawing every choice
    x = numbers(size, width, density, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    labels = torch.randint(2, (size, num_labels), generator=generator).double()
    unknown = torch.rand(size, num_labels, generator=generator)
    unknown[0] = 1.0  # somebody must be there to draw
    labels[unknown < 0.2], labels[unknown < 0.1] = torch.nan, IGNORE_LABEL
    weights = torch.randint(4, (size,), generator=generator).double() / 2
    weights[0] = 1.0
    weights = choose([None, weights])
    judging = Judging(
        criterion=choose([binary_cross_entropy, multilabel_f1]),
        rule=MultilabelRule(choose([0.0, 0.1, -0.2])),
        comparison_size=choose([None, 1]),
        momentum=choose([0.0, 0.7]),
        compare_bias=choose([False, True]),
        seed=seed,
    )
    problem = data_of(x, labels, weights, csr=choose([False, True]))
    layer, model = layer_and_model(width, num_labels, seed)
    judge, by_hand = LinearJudge(model, problem, judging), JudgeByHand(layer, x, problem, judging)
    for count in (size, choose(range(1, size + 1))):
        rows = torch.randperm(size, generator=generator)[:count]
        _, outputs, learned = judge.decide(rows)
        expected = by_hand.judge(rows)
        torch.testing.assert_close(outputs, layer(x[rows]).detach(), rtol=1e-9, atol=1e-12)
        clear = expected.clear
        torch.testing.assert_close(learned[clear], expected.labels[clear], equal_nan=True)
        check_ledger(judge.ledger(), rows, expected)


# what a score is


@pytest.mark.parametrize("rule", [Rule(), Rule(threshold=0.1), Rule("any"), Rule(scores=True)])
def test_the_stabiliser_counts_in_every_score(rule):
    x, labels = single()
    problem, rows = data_of(x, labels), torch.arange(16)
    plain, stable = (
        judge_of(x, problem, Judging(rule=Rule(rule.alternative_label, rule.threshold, eps)))
        for eps in (0.0, 1e9)
    )
    for judge in (plain, stable):
        judge.decide(rows)
    assert (plain.ledger().totals["score_last"][rows].abs() > 1e-3).all()
    assert (stable.ledger().totals["score_last"][rows].abs() < 1e-6).all()
    if rule.threshold > 0:
        assert (stable.ledger().totals["dropped"][rows] == 1).all()


def test_several_labels_have_the_stabiliser_too():
    x = numbers(12, 4)
    problem = data_of(x, (x[:, :3] > 0).double())
    judge = judge_of(x, problem, Judging(binary_cross_entropy, MultilabelRule(0.01, eps=1e9)))
    _, _, learned = judge.decide(torch.arange(12))
    assert (learned == IGNORE_LABEL).all()


def test_a_score_is_there_whether_or_not_the_verdict_needed_one():
    x, labels = single()
    labels[::5] = IGNORE_LABEL
    rows = torch.arange(40)
    by_rule = {}
    for rule in (Rule(), Rule(scores=True), Rule("any"), Rule(threshold=1e-12)):
        judge = judge_of(x, data_of(x, labels), Judging(soft_f1, rule))
        for part in rows.split(16):
            judge.decide(part)
        by_rule[rule] = judge.ledger().totals["score_last"]
        assert torch.equal(by_rule[rule].isnan(), labels == IGNORE_LABEL)
    for scores in by_rule.values():
        torch.testing.assert_close(scores, by_rule[Rule()], equal_nan=True)


def test_single_precision_agrees_with_double():
    x, labels = single(60)
    found = {}
    for dtype in (torch.float32, torch.float64):
        model = layer_and_model(5, 3, 1)[1].to(dtype)
        problem = LinearData(as_rows(x, dtype), labels)
        judge = LinearJudge(model, problem, Judging(soft_f1, Rule("any")))
        _, outputs, found[dtype] = judge.decide(torch.arange(60))
        assert outputs.dtype == dtype
        scores = judge.ledger().totals["score_last"]
    clear = scores.abs() > 1e-3
    assert clear.sum() > 50
    assert torch.equal(found[torch.float32][clear], found[torch.float64][clear])


# comparison batches


def drawn_sizes(judge):
    sizes, draw = [], judge.sampler.draw
    judge.sampler.draw = lambda size: sizes.append(size) or draw(size)
    return sizes


def test_comparison_batches_are_as_large_as_the_largest_update_batch():
    x, labels = single()
    judge = judge_of(x, data_of(x, labels))
    sizes = drawn_sizes(judge)
    for size in (10, 30, 7):
        judge.decide(torch.arange(size))
    assert sizes == [10, 30, 30]


def test_comparison_batches_are_of_a_size_asked_for():
    x, labels = single()
    judge = judge_of(x, data_of(x, labels), Judging(comparison_size=12))
    sizes = drawn_sizes(judge)
    for size in (10, 30, 12):
        judge.decide(torch.arange(size))
    assert sizes == [12, 12, 12]


def test_without_a_size_they_never_ask_for_more_than_there_is():
    x, labels = single()
    labels[6:] = IGNORE_LABEL
    judge = judge_of(x, data_of(x, labels))
    sizes = drawn_sizes(judge)
    judge.decide(torch.arange(40))
    assert sizes == [6]


def test_more_than_there_is_means_all():
    x, labels = single()
    rows = torch.arange(10)

    def scores(size):
        judge = judge_of(x, data_of(x, labels), Judging(comparison_size=size))
        judge.decide(rows)
        return judge.ledger().totals["score_last"]

    with pytest.warns(UserWarning, match="to be at most 40.*got 400; using all of them"):
        found = scores(400)
    torch.testing.assert_close(found, scores(40), equal_nan=True)


def test_more_than_there_is_is_said_once():
    x, labels = single()
    with pytest.warns(UserWarning, match="got 400; using all of them") as said:
        judge = judge_of(x, data_of(x, labels), Judging(comparison_size=400))
    assert len(said) == 1
    for rows in torch.arange(40).split(10):
        judge.decide(rows)  # here a warning is an error


def test_a_size_below_one_is_refused_at_once():
    x, labels = single()
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"`comparison_size` to be at least 1, got {size}"):
            judge_of(x, data_of(x, labels), Judging(comparison_size=size))


def test_who_has_no_label_or_weighs_nothing_is_never_drawn():
    x, labels = single()
    labels[:10] = IGNORE_LABEL
    weights = torch.ones(40, dtype=torch.float64)
    weights[30:] = 0
    entries = torch.eye(3, dtype=torch.float64)[labels.clamp(min=0)]
    entries[:10] = torch.nan
    for problem in (data_of(x, labels, weights), data_of(x, entries, weights)):
        judge = judge_of(x, problem)
        assert judge.sampler.num_rows == 20
        assert set(judge.sampler.draw(20)[0].tolist()) == set(range(10, 30))
    assert int((weights == 0).sum()) == 10  # and the caller's parts are as they were
    assert int((labels == IGNORE_LABEL).sum()) == 10


def test_comparison_batches_may_be_weighted_row_by_row():
    x, labels = single()
    chosen = torch.tensor([3, 8, 17, 21, 22])
    weights = torch.zeros(40).index_fill(0, chosen, 1.0)
    judging = Judging(weights=weights, comparison_size=5)
    judge = judge_of(x, data_of(x, labels), judging)
    layer = layer_and_model(5, 3, 1)[0]
    judge.decide(torch.arange(40))
    by_hand = JudgeByHand(layer, x, data_of(x, labels), Judging())
    expected = by_hand.judge_samples(torch.arange(40), by_hand.gradient_of(chosen))
    assert expected.clear.all()
    check_ledger(judge.ledger(), torch.arange(40), expected)


def test_a_momentum_that_never_forgets_is_refused():
    x, labels = single()
    with pytest.raises(ValueError, match=r"Expected `momentum` to be in \[0, 1\), got 1"):
        judge_of(x, data_of(x, labels), Judging(momentum=1))


# the ledger


def same_ledgers(one, other, rtol=0.0):
    parts = zip([one.totals, *one.epochs], [other.totals, *other.epochs], strict=True)
    for columns, twins in parts:
        for name, part in columns.items():
            # of half precision the last digit may be another
            own = max(rtol, 1e-3) if rtol and part.dtype == torch.float16 else rtol
            torch.testing.assert_close(part, twins[name], rtol=own, atol=0, equal_nan=True)
    assert one.updates == other.updates


@pytest.mark.parametrize("several", [False, True], ids=["single", "several"])
def test_the_ledger_does_not_depend_on_when_it_is_read(several):
    x, labels = single(150)
    labels = torch.eye(3, dtype=torch.float64)[labels] if several else labels
    rule = MultilabelRule() if several else Rule("any")
    criterion = multilabel_f1 if several else soft_f1
    ledgers = []
    for often in (1, 7, 1000):
        judge = judge_of(x, data_of(x, labels), Judging(criterion, rule, momentum=0.5))
        step = itertools.count(1)
        for _ in range(2):
            judge.ledger().start_epoch()
            for rows in torch.arange(150).split(2):  # more updates than are written at a time
                judge.decide(rows)
                if next(step) % often == 0:
                    judge.ledger()
        ledgers.append(judge.ledger())
    assert len(ledgers[0].updates) == 150
    assert (ledgers[0].totals["judged"] == 2).all()
    for ledger in ledgers[1:]:  # but for the last digit, which depends on what is computed at once
        same_ledgers(ledger, ledgers[0], rtol=1e-6)


def test_the_ledger_has_one_line_per_update_and_the_models_probabilities():
    x, labels = single()
    labels[3] = IGNORE_LABEL
    judge = judge_of(x, data_of(x, labels), Judging(rule=Rule("any", threshold=0.05)))
    layer = layer_and_model(5, 3, 1)[0]
    batches = (torch.arange(16), torch.arange(16, 40), torch.tensor([3, 9]))
    learned = [judge.decide(rows)[2] for rows in batches]
    ledger = judge.ledger()
    assert [sum(update) for update in ledger.updates] == [16, 24, 2]
    dropped = [int((labels == IGNORE_LABEL).sum()) for labels in learned]
    assert [update[1] for update in ledger.updates] == dropped
    probabilities = layer(x).softmax(dim=1).detach()[torch.arange(40), labels.clamp(min=0)]
    probabilities[3] = torch.nan
    found = ledger.totals["probability_last"]
    torch.testing.assert_close(found, probabilities.float(), rtol=1e-5, atol=0, equal_nan=True)
    assert int(ledger.totals["judged"][9]) == 2


def test_counts_are_those_since_the_last_call():
    x, labels = single()
    judge = judge_of(x, data_of(x, labels), Judging(rule=Rule("any")))
    assert judge.counts() == (0, 0, 0)
    judge.decide(torch.arange(16))
    judge.decide(torch.arange(16, 20))
    first = judge.counts()
    assert sum(first) == 20
    judge.ledger()
    judge.decide(torch.arange(20, 40))
    second = judge.counts()
    assert sum(second) == 20
    assert judge.counts() == (0, 0, 0)
    totals = [judge.ledger().totals[name] for name in ("kept", "dropped", "relabelled")]
    assert tuple(int(total.sum()) for total in totals) == tuple(
        one + two for one, two in zip(first, second, strict=True)
    )


def test_a_state_of_another_training_set_is_refused():
    x, labels = single()
    judge, other = (judge_of(x[:n], data_of(x[:n], labels[:n])) for n in (40, 20))
    judge.decide(torch.arange(8))
    with pytest.raises(ValueError, match=r"Expected a ledger of shape \(20,\)"):
        other.load_state_dict(judge.state_dict())


def test_a_saved_state_is_a_picture_of_its_moment():
    x, labels = single()

    def judges():
        judging = Judging(soft_f1, Rule("any"), comparison_size=9, momentum=0.5)
        return judge_of(x, data_of(x, labels), judging)

    judge = judges()
    judge.decide(torch.arange(16))
    state = judge.state_dict()
    expected = [judge.decide(rows)[2] for rows in torch.arange(40).split(13)]
    for _ in range(2):  # what came after changed nothing in it, nor did loading it
        again = judges()
        again.decide(torch.arange(5))
        again.load_state_dict(state)
        found = [again.decide(rows)[2] for rows in torch.arange(40).split(13)]
        assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))
        same_ledgers(again.ledger(), judge.ledger())

"""Derivatives in closed form equal autograd, for several batches at a time too."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from agra import IGNORE_LABEL
from agra.losses import (
    CRITERIA,
    MULTILABEL_CRITERIA,
    binary_cross_entropy,
    cross_entropy,
    multilabel_f1,
    soft_f1,
)
from agra.output_gradients import loss_and_gradient, losses_and_gradients, output_gradients

NAN = math.nan
KINDS = {
    (name, kind): criterion
    for names, kinds in ((CRITERIA, ("hard", "soft", "mixed")), (MULTILABEL_CRITERIA, ("entries",)))
    for name, criterion in names.items()
    for kind in kinds
}
each_kind = pytest.mark.parametrize(
    ("criterion", "kind"),
    [
        pytest.param(criterion, kind, id=f"{name}-{kind}")
        for (name, kind), criterion in KINDS.items()
    ],
)
each_criterion = pytest.mark.parametrize(
    "criterion", [cross_entropy, soft_f1, binary_cross_entropy, multilabel_f1]
)
repeatable = settings(max_examples=25, deadline=None, derandomize=True)


def evaluated(*args, **kwargs):
    losses, gradients = losses_and_gradients(*args, **kwargs)
    return losses(), gradients


def generator_of(seed):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return 2 * torch.randn(shape, generator=generator_of(seed), dtype=torch.float64)


def labels_of(kind, size, num_classes, seed=0, unknown=0.0):
    """Labels of one batch, some of them unknown, however that is said."""
    generator = generator_of(seed)
    hidden = torch.rand(size, generator=generator) < unknown
    if kind == "mixed":
        kind = "soft" if seed % 2 else "hard"
    if kind == "hard":
        labels = torch.randint(num_classes, (size,), generator=generator)
        return labels.masked_fill(hidden, IGNORE_LABEL)
    if kind == "soft":
        labels = torch.rand(size, num_classes, generator=generator, dtype=torch.float64)
        labels /= labels.sum(dim=1, keepdim=True)
        return labels.masked_fill(hidden.unsqueeze(1), NAN if seed % 3 else IGNORE_LABEL)
    labels = torch.randint(2, (size, num_classes), generator=generator).double()
    draws = torch.rand(size, num_classes, generator=generator)
    labels[draws < unknown], labels[draws < unknown / 2] = NAN, IGNORE_LABEL
    return labels


def by_autograd(criterion, outputs, labels, weights=None):
    """The criterion over the samples that have a say, and its derivative in all outputs."""
    known = ~(labels.isnan() | (labels == IGNORE_LABEL))
    rows = known if known.ndim == 1 else known.any(dim=1)
    if weights is not None:
        rows = rows & (weights != 0)
    leaf = outputs.detach().clone().requires_grad_()
    if not rows.any():
        return torch.zeros((), dtype=outputs.dtype), torch.zeros_like(outputs)
    arguments = [leaf[rows], labels[rows], *([] if weights is None else [weights[rows]])]
    loss = criterion(*arguments)
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]


def check(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


# several batches at a time


@each_kind
def test_several_batches_at_a_time_equal_autograd_of_each(criterion, kind):
    @repeatable
    @given(
        batches=st.integers(1, 4),
        size=st.integers(1, 6),
        num_classes=st.integers(1, 5),
        unknown=st.sampled_from([0.0, 0.3, 1.0]),
        same_outputs=st.booleans(),
        weighted=st.sampled_from(["not", "each", "same"]),
        seed=st.integers(0, 999),
    )
    def run(batches, size, num_classes, unknown, same_outputs, weighted, seed):
        outputs = normal(1 if same_outputs else batches, size, num_classes, seed=seed)
        columns = [labels_of(kind, size, num_classes, seed + b, unknown) for b in range(batches)]
        drawn = torch.randint(4, (batches, size), generator=generator_of(seed)).double() / 2
        weights = {"not": None, "each": drawn, "same": drawn[:1]}[weighted]
        losses, gradients = evaluated(criterion, outputs, columns, weights)
        assert losses.shape == (batches,)
        assert gradients.shape == (batches, size, num_classes)
        each = outputs.expand(batches, -1, -1)
        for b, labels in enumerate(columns):
            own = None if weights is None else weights.expand(batches, -1)[b]
            check((losses[b], gradients[b]), by_autograd(criterion, each[b], labels, own))

    run()


@each_kind
def test_columns_of_candidates_equal_autograd_of_each(criterion, kind):
    outputs, weights = normal(6, 3), torch.tensor([1.0, 0.0, 2.0, 0.5, 1.0, 3.0]).double()
    columns = [labels_of(kind, 6, 3, seed, unknown=0.2) for seed in range(3)]
    if criterion in CRITERIA.values():
        columns += [torch.full((6,), label) for label in range(3)]
    for own in (None, weights):
        found = output_gradients(criterion, outputs, columns, own)
        assert found.shape == (6, len(columns), 3)
        for c, column in enumerate(columns):
            check(found[:, c], by_autograd(criterion, outputs, column, own)[1])


@pytest.mark.parametrize("weighted", [False, True])
@each_criterion
def test_very_many_outputs_are_the_same_as_few(criterion, weighted):
    size = 2**19 + 1  # with so many outputs, columns are differentiated one at a time
    kind = "hard" if criterion in CRITERIA.values() else "entries"
    outputs = normal(size, 2).float()
    columns = [labels_of(kind, size, 2, seed, unknown=0.1) for seed in range(2)]
    weights = torch.arange(size).remainder(3).float() if weighted else None
    found = output_gradients(criterion, outputs, columns, weights)
    for c, column in enumerate(columns):
        expected = by_autograd(criterion, outputs, column, weights)[1]
        torch.testing.assert_close(found[:, c] * size, expected * size, rtol=1e-3, atol=1e-4)


# a batch of which nothing counts


@each_kind
@pytest.mark.parametrize("why", ["unknown", "weightless", "empty"])
def test_a_batch_of_which_nothing_counts_has_no_loss_and_spoils_no_other(criterion, kind, why):
    size = 0 if why == "empty" else 4
    outputs = normal(2, size, 3)
    columns = [labels_of(kind, size, 3, seed, float(why == "unknown" and seed)) for seed in (0, 1)]
    weights = torch.tensor([[1.0] * 4, [0.0] * 4]).double() if why == "weightless" else None
    losses, gradients = evaluated(criterion, outputs, columns, weights)
    assert losses[1] == 0
    assert (gradients[1] == 0).all()
    if size:
        own = None if weights is None else weights[0]
        check((losses[0], gradients[0]), by_autograd(criterion, outputs[0], columns[0], own))
        assert gradients[0].abs().max() > 1e-3


# weights


@each_kind
def test_weights_may_be_of_any_type(criterion, kind):
    outputs, labels = normal(5, 3), labels_of(kind, 5, 3)
    weights = torch.tensor([1, 0, 2, 3, 1])
    expected = by_autograd(criterion, outputs, labels, weights.double())
    for dtype in (torch.int64, torch.float32, torch.float16):
        check(loss_and_gradient(criterion, outputs, labels, weights.to(dtype)), expected)
    chosen = loss_and_gradient(criterion, outputs, labels, weights > 0)
    check(chosen, by_autograd(criterion, outputs, labels, (weights > 0).double()))


def test_a_users_criterion_is_given_the_weights_of_who_counts():
    seen = []

    def weighted_squares(outputs, labels, weights):
        seen.append((labels.tolist(), weights.tolist()))
        return (weights * (outputs[:, 0] - labels) ** 2).sum()

    outputs, labels = normal(4, 2), torch.tensor([1, IGNORE_LABEL, 0, 1])
    weights = torch.tensor([0.5, 1.0, 0.0, 2.0]).double()
    found = output_gradients(weighted_squares, outputs, [labels, labels.clamp(min=0)], weights)
    assert seen == [([1, 1], [0.5, 2.0]), ([1, 0, 1], [0.5, 1.0, 2.0])]
    expected = torch.zeros(4, 2, 2, dtype=torch.float64)
    expected[0, :, 0] = 2 * 0.5 * (outputs[0, 0] - 1)
    expected[1, 1, 0] = 2 * 1.0 * outputs[1, 0]
    expected[3, :, 0] = 2 * 2.0 * (outputs[3, 0] - 1)
    check(found, expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_users_criterion_is_differentiated_where_autograd_is_switched_off(mode):
    def own(outputs, labels, weights):
        return functional.cross_entropy(outputs, labels, reduction="none") @ weights

    with mode():  # so that all of these are made in it
        outputs, labels = normal(4, 2), torch.tensor([1, IGNORE_LABEL, 0, 1])
        weights = torch.tensor([0.5, 1.0, 0.0, 2.0]).double()
        found = output_gradients(own, outputs, [labels, labels.clamp(min=0)], weights)
    parts = outputs.clone(), labels.clone(), weights.clone()
    check(found[:, 0], by_autograd(own, *parts)[1])
    check(found[:, 1], by_autograd(own, parts[0], parts[1].clamp(min=0), parts[2])[1])


def test_a_users_criterion_is_asked_batch_by_batch():
    def squares(outputs, labels):
        return ((outputs - labels.unsqueeze(1)) ** 2).mean()

    outputs, columns = normal(2, 4, 3), [torch.tensor([0, 1, 2, 0]), torch.tensor([-100, 1, 1, 2])]
    losses, gradients = evaluated(squares, outputs, columns, None)
    for b, labels in enumerate(columns):
        check((losses[b], gradients[b]), by_autograd(squares, outputs[b], labels))


# two classes


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_of_two_classes_only_the_second_ones_f1_is_differentiated(kind):
    outputs, labels = normal(6, 2), labels_of(kind, 6, 2, seed=1)
    truth = labels.double() if kind == "hard" else labels[:, 1]
    leaf = outputs.clone().requires_grad_()
    predicted = leaf.softmax(dim=1)[:, 1]
    f1 = 2 * (predicted * truth).sum() / (predicted.sum() + truth.sum() + 1e-5)
    (expected,) = torch.autograd.grad(1 - f1, leaf)
    loss, found = loss_and_gradient(soft_f1, outputs, labels)
    check((loss, found), (1 - f1.detach(), expected))
    check(found[:, 0], -found[:, 1])
    assert found.abs().max() > 0.01


def test_without_the_second_of_two_classes_no_output_matters():
    _, found = loss_and_gradient(soft_f1, normal(5, 2), torch.zeros(5, dtype=torch.int64))
    assert (found == 0).all()


@pytest.mark.parametrize("criterion", [cross_entropy, soft_f1])
def test_softmax_gradients_of_a_sample_sum_to_zero(criterion):
    found = output_gradients(criterion, normal(5, 4), [labels_of("hard", 5, 4)])
    check(found.sum(dim=2), torch.zeros(5, 1, dtype=torch.float64))
    assert found.abs().max() > 1e-3


@pytest.mark.parametrize("criterion", [cross_entropy, soft_f1])
def test_soft_rows_need_not_sum_to_one(criterion):
    outputs, labels = normal(5, 3), labels_of("soft", 5, 3) * torch.arange(1.0, 6).unsqueeze(1)
    expected = by_autograd(criterion, outputs, labels)
    check(loss_and_gradient(criterion, outputs, labels), expected)


# types


@each_kind
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_fewer_digits_come_out_in_single_precision(criterion, kind, dtype):
    outputs, weights = normal(2, 5, 3).to(dtype), torch.tensor([[1.0, 0.5, 2.0, 0.0, 1.0]]).double()
    columns = [labels_of(kind, 5, 3, seed, unknown=0.2) for seed in (0, 1)]
    for own in (None, weights, weights.to(dtype)):
        losses, gradients = evaluated(criterion, outputs, columns, own)
        assert losses.dtype == gradients.dtype == torch.float32
        for b, labels in enumerate(columns):
            labels = labels.float() if labels.is_floating_point() else labels
            expected = by_autograd(
                criterion, outputs[b].float(), labels, None if own is None else own[0].float()
            )
            torch.testing.assert_close((losses[b], gradients[b]), expected, rtol=1e-4, atol=1e-6)


@each_criterion
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.float32])
def test_labels_of_any_type_say_the_same(criterion, dtype):
    single = criterion in CRITERIA.values()
    if single and dtype.is_floating_point:
        return
    labels = torch.tensor([1, 0, 1] if single else [[1, 0], [0, 0], [1, 1]])
    outputs = normal(2, 3, 2)
    expected = [
        by_autograd(criterion, batch, labels.double() if not single else labels)
        for batch in outputs
    ]
    columns = [labels.to(dtype)] * 2
    weights = torch.ones(2, 3, dtype=torch.float64)
    for own in (None, weights):
        losses, gradients = evaluated(criterion, outputs, columns, own)
        for b in (0, 1):
            check((losses[b], gradients[b]), expected[b])


@each_kind
def test_outputs_far_out_have_finite_evaluated(criterion, kind):
    outputs = 1e4 * torch.sign(normal(2, 5, 3))
    columns = [labels_of(kind, 5, 3, seed) for seed in (0, 1)]
    for dtype in (torch.float32, torch.float64):
        losses, gradients = evaluated(criterion, outputs.to(dtype), columns, None)
        assert losses.isfinite().all()
        assert gradients.isfinite().all()


# manners


@each_kind
def test_nothing_of_the_callers_is_changed_or_needed_twice(criterion, kind):
    outputs = normal(2, 5, 3).requires_grad_()
    columns = [labels_of(kind, 5, 3, seed, unknown=0.3) for seed in (0, 1)]
    weights = torch.tensor([[1.0, 0.0, 2.0, 0.5, 1.0]] * 2).double()
    before = [part.detach().clone() for part in (outputs, *columns, weights)]
    found = evaluated(criterion, outputs, columns, weights)
    again = evaluated(criterion, outputs, columns, weights)
    check(found, again)
    for part in found:
        assert not part.requires_grad
        part.zero_()  # the caller's own
    assert outputs.grad is None
    for old, new in zip(before, (outputs, *columns, weights), strict=True):
        torch.testing.assert_close(new.detach(), old, rtol=0, atol=0, equal_nan=True)


@each_kind
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_come_out_where_autograd_is_switched_off(criterion, kind, mode):
    outputs = normal(2, 5, 3)
    columns = [labels_of(kind, 5, 3, seed, unknown=0.3) for seed in (0, 1)]
    weights = torch.tensor([[1.0, 0.0, 2.0, 0.5, 1.0]] * 2).double()
    with mode():
        found = evaluated(criterion, outputs, columns, weights)
    for b, labels in enumerate(columns):
        check((found[0][b], found[1][b]), by_autograd(criterion, outputs[b], labels, weights[b]))

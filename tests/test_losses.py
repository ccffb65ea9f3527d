import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agra.labels import IGNORE_LABEL
from agra.losses import (
    CRITERIA,
    F1_EPSILON,
    MULTILABEL_CRITERIA,
    batch_loss,
    binary_cross_entropy,
    cross_entropy,
    find_criterion,
    is_multilabel,
    multilabel_f1,
    soft_f1,
)
from agra.output_gradients import loss_and_gradient, output_gradients

NAN = math.nan
repeatable = settings(max_examples=40, deadline=None, derandomize=True)


# the paper's formulas, sample by sample and class by class


def softmax(row):
    powers = [math.exp(value) for value in row]
    return [power / sum(powers) for power in powers]


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def known(entry):
    return not math.isnan(entry) and entry != -100


def one_hot(label, num_classes):
    return label if isinstance(label, list) else [float(label == k) for k in range(num_classes)]


def f1_of_class(predicted, truth):
    tp = fp = fn = 0.0
    for y_hat, y in zip(predicted, truth, strict=True):
        tp += y_hat * y
        fp += y_hat * (1 - y)
        fn += (1 - y_hat) * y
    return 2 * tp / (2 * tp + fp + fn + 1e-5)


def slow_cross_entropy(outputs, labels):
    total = 0.0
    for row, label in zip(outputs, labels, strict=True):
        for y_hat, y in zip(softmax(row), one_hot(label, len(row)), strict=True):
            total -= y * math.log(y_hat)
    return total / len(outputs)


def slow_soft_f1(outputs, labels):
    num_classes = len(outputs[0])
    predicted = [softmax(row) for row in outputs]
    truth = [one_hot(label, num_classes) for label in labels]
    scores = [
        f1_of_class([row[k] for row in predicted], [row[k] for row in truth])
        for k in range(num_classes)
    ]
    return 1 - scores[1] if num_classes == 2 else 1 - sum(scores) / num_classes


def slow_binary_cross_entropy(outputs, labels):
    total = 0.0
    for k in range(len(outputs[0])):
        of_label, retained = 0.0, 0
        for row, truth in zip(outputs, labels, strict=True):
            if known(truth[k]):
                y_hat, y = sigmoid(row[k]), truth[k]
                of_label -= math.log(y_hat) * y + math.log(1 - y_hat) * (1 - y)
                retained += 1
        total += of_label / retained if retained else 0.0
    return total / len(outputs[0])


def slow_multilabel_f1(outputs, labels):
    total = 0.0
    for k in range(len(outputs[0])):
        pairs = [
            (sigmoid(row[k]), truth[k])
            for row, truth in zip(outputs, labels, strict=True)
            if known(truth[k])
        ]
        total += f1_of_class([y_hat for y_hat, _ in pairs], [y for _, y in pairs])
    return 1 - total / len(outputs[0])


SLOW = {
    cross_entropy: slow_cross_entropy,
    soft_f1: slow_soft_f1,
    binary_cross_entropy: slow_binary_cross_entropy,
    multilabel_f1: slow_multilabel_f1,
}
single = pytest.mark.parametrize("criterion", [cross_entropy, soft_f1])
several = pytest.mark.parametrize("criterion", [binary_cross_entropy, multilabel_f1])


# batches that hypothesis draws

seeds = st.integers(0, 2**32 - 1)


@st.composite
def shapes(draw):
    return draw(st.integers(1, 6)), draw(st.integers(2, 5))


def normal(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(shape, generator=generator, dtype=torch.float64)


@st.composite
def single_batches(draw, soft=None, unknown=False):
    size, classes = draw(shapes())
    outputs = normal(draw(seeds), size, classes)
    if draw(st.booleans()) if soft is None else soft:
        labels = normal(draw(seeds), size, classes).softmax(dim=1)
    else:
        drawn = draw(st.lists(st.integers(0, classes - 1), min_size=size, max_size=size))
        labels = torch.tensor(drawn)
    if unknown:
        hidden = torch.tensor(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
        labels[hidden] = IGNORE_LABEL
    return outputs, labels


@st.composite
def several_batches(draw):
    size, classes = draw(shapes())
    entries = st.sampled_from([0.0, 1.0, 0.0, 1.0, NAN, -100.0])
    row = st.lists(entries, min_size=classes, max_size=classes)
    drawn = draw(st.lists(row, min_size=size, max_size=size))
    return normal(draw(seeds), size, classes), torch.tensor(drawn, dtype=torch.float64)


def close(found, expected):
    return found == pytest.approx(expected, rel=1e-9, abs=1e-12)


# the values


@single
@pytest.mark.parametrize("soft", [False, True], ids=["indices", "soft"])
def test_single_label_criteria_are_the_papers_formulas(criterion, soft):
    @repeatable
    @given(single_batches(soft=soft))
    def check(batch):
        outputs, labels = batch
        expected = SLOW[criterion](outputs.tolist(), labels.tolist())
        assert close(criterion(outputs, labels).item(), expected)

    check()


@several
def test_criteria_for_several_labels_are_the_papers_formulas_over_known_entries(criterion):
    @repeatable
    @given(several_batches())
    def check(batch):
        outputs, labels = batch
        expected = SLOW[criterion](outputs.tolist(), labels.tolist())
        assert close(criterion(outputs, labels).item(), expected)

    check()


@single
def test_one_hot_rows_say_the_same_as_class_indices(criterion):
    outputs, labels = normal(0, 5, 3), torch.tensor([0, 2, 1, 1, 0])
    rows = torch.nn.functional.one_hot(labels, 3).double()
    torch.testing.assert_close(criterion(outputs, rows), criterion(outputs, labels))


@single
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int32])
def test_class_indices_may_be_of_any_integer_type(criterion, dtype):
    outputs, labels = normal(0, 3, 2), torch.tensor([1, 0, 1])
    assert criterion(outputs, labels.to(dtype)) == criterion(outputs, labels)


@single
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_soft_labels_may_be_of_another_floating_type_than_the_outputs(criterion, dtype):
    outputs, labels = normal(0, 3, 2).float(), torch.tensor([[0.5, 0.5], [1, 0], [0.25, 0.75]])
    torch.testing.assert_close(
        criterion(outputs, labels.to(dtype)), criterion(outputs, labels), check_dtype=False
    )


def test_two_classes_are_the_f1_of_class_one_and_not_the_macro_f1():
    outputs = torch.tensor([[0.0, 3.0], [2.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([1, 1, 0])
    predicted = [softmax(row) for row in outputs.tolist()]
    of_class = [
        f1_of_class([row[k] for row in predicted], (labels == k).double().tolist()) for k in (0, 1)
    ]
    assert close(soft_f1(outputs, labels).item(), 1 - of_class[1])
    assert abs(of_class[0] - of_class[1]) > 0.1


def test_a_batch_without_the_positive_class_loses_everything_at_a_finite_value():
    assert soft_f1(normal(0, 4, 2), torch.zeros(4, dtype=torch.int64)).item() == 1


def test_the_stabiliser_is_the_papers():
    assert F1_EPSILON == 1e-5
    certain = torch.tensor([[0.0, 800.0]], dtype=torch.float64)
    assert close(soft_f1(certain, torch.tensor([1])).item(), 1 - 2 / (2 + 1e-5))


@pytest.mark.parametrize("marker", [NAN, -100.0])
def test_a_label_without_known_entries_adds_nothing_to_the_masked_bce(marker):
    outputs = normal(1, 3, 2)
    labels = torch.tensor([[1.0, marker], [0.0, marker], [1.0, marker]], dtype=torch.float64)
    alone = binary_cross_entropy(outputs[:, :1], labels[:, :1])
    assert close(binary_cross_entropy(outputs, labels).item(), alone.item() / 2)


@several
def test_unknown_entries_count_nowhere_whatever_their_outputs(criterion):
    labels = torch.tensor([[1, -100], [0, 1], [-100, 0]])
    outputs = normal(2, 3, 2)
    moved = outputs + 5 * (labels == -100)
    assert criterion(moved, labels) == criterion(outputs, labels)


@several
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
def test_entries_may_be_of_any_type(criterion, dtype):
    outputs, labels = normal(3, 3, 2), torch.tensor([[1, 0], [0, 1], [1, 1]])
    assert criterion(outputs, labels.to(dtype)) == criterion(outputs, labels.double())


# the names


def test_names_find_their_criteria():
    assert {name: find_criterion(name) for name in CRITERIA} == {
        "cross-entropy": cross_entropy,
        "f1": soft_f1,
    }
    assert {name: find_criterion(name, multilabel=True) for name in MULTILABEL_CRITERIA} == {
        "bce": binary_cross_entropy,
        "multilabel-f1": multilabel_f1,
    }


def test_f1_means_the_multilabel_f1_where_there_are_several_labels():
    assert find_criterion("f1", multilabel=True) is multilabel_f1


@pytest.mark.parametrize("multilabel", [False, True])
def test_a_callable_comes_back_as_it_is(multilabel):
    def own(outputs, labels):
        return outputs.sum()

    assert find_criterion(own, multilabel=multilabel) is own


@pytest.mark.parametrize(
    ("name", "multilabel", "text"),
    [
        ("cross-entrpy", False, r"`criterion` to be one of \['cross-entropy', 'f1'\], .*"),
        ("bce", False, r"`criterion` to be one of \['cross-entropy', 'f1'\], got 'bce'"),
        ("cross-entropy", True, r"`criterion` to be one of \['bce', 'f1', 'multilabel-f1'\]"),
    ],
)
def test_an_unknown_name_is_refused(name, multilabel, text):
    with pytest.raises(ValueError, match=text):
        find_criterion(name, multilabel=multilabel)


@pytest.mark.parametrize("criterion", [None, 3])
def test_what_is_neither_a_name_nor_callable_is_refused(criterion):
    text = rf"name or a callable \(outputs, labels\) -> scalar, got {type(criterion).__name__}\."
    with pytest.raises(TypeError, match=text):
        find_criterion(criterion)


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        ("bce", True),
        ("multilabel-f1", True),
        (binary_cross_entropy, True),
        (multilabel_f1, True),
        ("f1", False),
        ("cross-entropy", False),
        (soft_f1, False),
        (torch.nn.functional.mse_loss, False),
    ],
)
def test_criteria_for_several_labels_are_known_as_such(criterion, expected):
    assert is_multilabel(criterion) is expected


# the output gradients


def central_differences(slow, outputs, labels, step=1e-5):
    """The derivative of the plain batch loss over the samples that carry a label."""
    rows = [
        n
        for n, label in enumerate(labels)
        if any(known(entry) for entry in (label if isinstance(label, list) else [label]))
    ]

    def loss(values):
        return slow([values[n] for n in rows], [labels[n] for n in rows]) if rows else 0.0

    gradient = torch.zeros(len(outputs), len(outputs[0]), dtype=torch.float64)
    for n, row in enumerate(outputs):
        for k in range(len(row)):
            up, down = ([list(values) for values in outputs] for _ in range(2))
            up[n][k] += step
            down[n][k] -= step
            gradient[n, k] = (loss(up) - loss(down)) / (2 * step)
    return gradient


@single
def test_output_gradients_are_the_derivatives_of_the_batch_loss_per_column(criterion):
    @settings(repeatable, max_examples=25)
    @given(single_batches(unknown=True), st.data())
    def check(batch, data):
        outputs, labels = batch
        size, classes = outputs.shape
        other = data.draw(st.integers(0, classes - 1))
        columns = [labels, torch.full((size,), other), torch.full((size,), IGNORE_LABEL)]
        found = output_gradients(criterion, outputs, columns)
        assert found.shape == (size, 3, classes)
        for c, column in enumerate(columns):
            expected = central_differences(SLOW[criterion], outputs.tolist(), column.tolist())
            torch.testing.assert_close(found[:, c], expected, rtol=1e-5, atol=1e-8)

    check()


@several
def test_output_gradients_of_several_labels_are_the_derivatives_of_the_batch_loss(criterion):
    @settings(repeatable, max_examples=25)
    @given(several_batches())
    def check(batch):
        outputs, labels = batch
        found = output_gradients(criterion, outputs, [labels])[:, 0]
        expected = central_differences(SLOW[criterion], outputs.tolist(), labels.tolist())
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-8)
        assert (found[labels.isnan() | (labels == -100)] == 0).all()

    check()


def test_samples_without_a_label_in_a_column_have_no_gradient_there_and_do_not_dilute_it():
    outputs, labels = normal(4, 4, 3), torch.tensor([1, -100, 0, -100])
    found = output_gradients(soft_f1, outputs, [labels])[:, 0]
    assert (found[[1, 3]] == 0).all()
    alone = output_gradients(soft_f1, outputs[[0, 2]], [labels[[0, 2]]])[:, 0]
    torch.testing.assert_close(found[[0, 2]], alone)


def test_f1_is_set_level_so_that_a_sample_alone_has_another_gradient():
    outputs, labels = normal(5, 4, 2), torch.tensor([0, 1, 1, 0])
    together = output_gradients(soft_f1, outputs, [labels])[:, 0]
    alone = output_gradients(soft_f1, outputs[:1], [labels[:1]])[:, 0]
    assert (alone == 0).all()  # the F1 of one negative sample is 0 whatever the outputs
    assert together[0].abs().max() > 0.01
    crowd = output_gradients(soft_f1, outputs[:3], [labels[:3]])[0, 0]
    assert (together[0] - crowd).abs().max() > 1e-3


def test_macro_f1_of_samples_alone_points_elsewhere():
    outputs, labels = normal(6, 6, 4), torch.tensor([0, 1, 2, 3, 0, 1])
    together = output_gradients(soft_f1, outputs, [labels])[:, 0]
    alone = [
        output_gradients(soft_f1, outputs[n : n + 1], [labels[n : n + 1]])[0, 0] for n in range(6)
    ]
    assert torch.cosine_similarity(together, torch.stack(alone)).min() < 0.9


def test_cross_entropy_of_a_sample_alone_differs_by_the_batch_size_only():
    outputs, labels = normal(5, 4, 2), torch.tensor([0, 1, 1, 0])
    together = output_gradients(cross_entropy, outputs, [labels])[0, 0]
    alone = output_gradients(cross_entropy, outputs[:1], [labels[:1]])[0, 0]
    torch.testing.assert_close(alone, 4 * together)


def test_every_column_labels_the_whole_batch():
    outputs, labels = normal(7, 3, 3), torch.tensor([0, 1, 2])
    columns = [labels, *(torch.tensor(k).expand(3) for k in range(3))]
    found = output_gradients(soft_f1, outputs, columns)
    for c, column in enumerate(columns):
        torch.testing.assert_close(found[:, c], output_gradients(soft_f1, outputs, [column])[:, 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("criterion", [cross_entropy, soft_f1])
def test_half_precision_outputs_have_single_precision_gradients(criterion, dtype):
    outputs, labels = normal(8, 4, 3).to(dtype), torch.tensor([0, 1, 2, 0])
    found = output_gradients(criterion, outputs, [labels])
    assert found.dtype == torch.float32
    assert torch.equal(found, output_gradients(criterion, outputs.float(), [labels]))


def test_double_precision_stays_double():
    assert output_gradients(soft_f1, normal(8, 4, 3), [torch.zeros(4).long()]).dtype == (
        torch.float64
    )


def test_any_callable_is_a_criterion():
    def squares(outputs, labels):
        return ((outputs - labels.unsqueeze(1)) ** 2).mean()

    outputs, labels = normal(9, 3, 2), torch.tensor([0.5, NAN, -1.0])
    found = output_gradients(squares, outputs, [labels])[:, 0]
    expected = torch.zeros(3, 2, dtype=torch.float64)
    for n in (0, 2):
        expected[n] = 2 * (outputs[n] - labels[n]) / 4
    torch.testing.assert_close(found, expected)


def test_the_outputs_and_their_graph_stay_untouched():
    weight = torch.ones(2, requires_grad=True)
    outputs = torch.eye(2) * weight
    before = outputs.clone()
    found = output_gradients(cross_entropy, outputs, [torch.tensor([0, 1])])
    assert not found.requires_grad
    assert weight.grad is None
    assert torch.equal(outputs, before)
    outputs.sum().backward()  # the graph is still there
    assert weight.grad.tolist() == [1, 1]


def test_gradients_come_out_where_autograd_is_switched_off():
    outputs, labels = normal(0, 3, 2), torch.tensor([0, 1, 1])
    expected = output_gradients(soft_f1, outputs, [labels])
    with torch.no_grad():
        assert torch.equal(output_gradients(soft_f1, outputs, [labels]), expected)


@pytest.mark.parametrize("size", [0, 3])
def test_a_batch_without_any_label_has_zero_gradients_and_no_loss_is_asked(size):
    def never(outputs, labels):
        raise AssertionError

    labels = torch.full((size,), IGNORE_LABEL)
    found = output_gradients(never, torch.ones(size, 2), [labels, labels])
    assert found.shape == (size, 2, 2)
    assert (found == 0).all()


@pytest.mark.parametrize(
    ("criterion", "given_text"),
    [
        (lambda outputs, labels: outputs.sum(dim=1), r"got shape \(2,\)"),
        (lambda outputs, labels: 3.0, r"got float"),
        (lambda outputs, labels: outputs.detach().sum(), r"got shape \(\)"),
    ],
    ids=["per-sample", "number", "constant"],
)
def test_a_criterion_that_is_no_differentiable_scalar_is_refused(criterion, given_text):
    text = rf"`criterion` to return a scalar tensor .* {given_text}; per-sample losses need \.mean"
    with pytest.raises(ValueError, match=text):
        output_gradients(criterion, torch.ones(2, 2), [torch.tensor([0, 1])])


def test_the_batch_loss_is_the_criterion_over_the_chosen_samples():
    outputs, labels = normal(1, 4, 3).requires_grad_(), torch.tensor([0, -100, 2, 1])
    rows = torch.tensor([True, False, True, False])
    found = batch_loss(soft_f1, outputs, labels, rows)
    expected = slow_soft_f1(outputs[[0, 2]].tolist(), [0, 2])
    assert close(found.item(), expected)
    whole = batch_loss(soft_f1, outputs[[0, 2, 3]], labels[[0, 2, 3]], torch.ones(3).bool())
    assert close(whole.item(), slow_soft_f1(outputs[[0, 2, 3]].tolist(), [0, 2, 1]))


# derivatives written out


def soft_rows(size, num_classes, generator):
    rows = torch.rand(size, num_classes, generator=generator, dtype=torch.float64)
    return rows / rows.sum(dim=1, keepdim=True)


@repeatable
@given(
    size=st.integers(1, 6), num_classes=st.integers(1, 5), seed=st.integers(0, 999), data=st.data()
)
def test_closed_forms_equal_autograd(size, num_classes, seed, data):
    generator = torch.Generator().manual_seed(seed)
    outputs = 3 * torch.randn(size, num_classes, generator=generator, dtype=torch.float64)
    hard = torch.randint(num_classes, (size,), generator=generator)
    entries = torch.randint(2, (size, num_classes), generator=generator).double()
    weights = torch.randint(4, (size,), generator=generator).double()
    hidden = torch.rand(size, generator=generator) < 0.3
    entries[torch.rand(size, num_classes, generator=generator) < 0.3] = NAN
    soft = soft_rows(size, num_classes, generator)
    soft[hidden], hard[hidden] = NAN, IGNORE_LABEL
    cases = [(name, labels) for name in CRITERIA.values() for labels in (hard, soft)]
    cases += [(name, entries) for name in MULTILABEL_CRITERIA.values()]
    criterion, labels = data.draw(st.sampled_from(cases))
    given_weights = data.draw(st.sampled_from([None, weights]))

    def slow(*arguments):
        return criterion(*arguments)

    expected = loss_and_gradient(slow, outputs, labels, given_weights)
    found = loss_and_gradient(criterion, outputs, labels, given_weights)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("criterion", [*CRITERIA.values(), *MULTILABEL_CRITERIA.values()])
def test_whole_weights_are_repetitions(criterion):
    outputs = torch.tensor([[1.0, -2.0], [0.5, 0.2], [-1.0, 1.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1])
    if criterion in MULTILABEL_CRITERIA.values():
        labels = torch.tensor([[0.0, 1.0], [NAN, 1.0], [1.0, NAN]])
    weights = torch.tensor([2.0, 0.0, 3.0], dtype=torch.float64)
    rows = torch.tensor([0, 0, 2, 2, 2])
    found, _ = loss_and_gradient(criterion, outputs, labels, weights)
    torch.testing.assert_close(found, criterion(outputs[rows], labels[rows]))


def test_errors_speak_of_the_argument_that_was_given():
    with pytest.raises(ValueError, match="Expected `update_loss` to be one of"):
        find_criterion("nothing", argument="update_loss")
    with pytest.raises(TypeError, match="Expected `update_loss` to be a name or a callable"):
        find_criterion(3, argument="update_loss")

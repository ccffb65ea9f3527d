"""The linear model and its data: outputs without a graph, and batches of every part."""

import numpy as np
import pytest
import torch
from scipy import sparse

from agra import IGNORE_LABEL
from agra.linear_model import LinearData, LinearModel
from agra.rows import as_rows

each_kind = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])


def features(size=6, width=3):
    generator = np.random.default_rng(0)
    return generator.normal(size=(size, width)) * (generator.random((size, width)) < 0.6)


def dense(rows):
    """The numbers themselves."""
    return rows.times(torch.eye(rows.shape[1], dtype=torch.float64))


def data(kind=np.asarray, **others):
    labels = torch.tensor([0, 1, IGNORE_LABEL, 1, 0, 1])
    return LinearData(as_rows(kind(features()), torch.float64), labels, **others)


WEIGHTS = torch.tensor([1.0, 0.0, 2.0, 0.5, 3.0, 1.5])
MASK = torch.tensor([[True, False]] * 3 + [[False, True]] * 3)


@each_kind
def test_outputs_are_those_of_a_linear_layer_without_a_graph(kind):
    torch.manual_seed(0)
    x, layer, model = features(), torch.nn.Linear(3, 4).double(), LinearModel(3, 4).double()
    model.load_state_dict({"weight": layer.weight.T, "bias": layer.bias})
    rows = as_rows(kind(x), torch.float64)
    outputs = model(rows)
    torch.testing.assert_close(outputs, layer(torch.from_numpy(x)).detach())
    assert not outputs.requires_grad
    outputs.zero_()  # the caller's own: a second pass gives the same again
    torch.testing.assert_close(model(rows), layer(torch.from_numpy(x)).detach())
    assert torch.equal(model.weight, layer.weight.T)
    assert torch.equal(model.bias, layer.bias)


@each_kind
def test_no_rows_have_no_outputs(kind):
    rows = as_rows(kind(features()), torch.float64).take(torch.arange(0))
    assert LinearModel(3, 4).double()(rows).shape == (0, 4)


def test_it_starts_from_zero():
    model = LinearModel(5, 3)
    assert model.weight.shape == (5, 3)
    assert model.bias.shape == (3,)
    assert all(not bool(part.any()) for part in model.parameters())
    assert all(part.requires_grad for part in model.parameters())
    assert set(model.state_dict()) == {"weight", "bias"}


@each_kind
def test_a_batch_has_the_same_rows_of_every_part(kind):
    numbers = torch.tensor([4, 0, 0, 5])
    batch = data(kind, weights=WEIGHTS, mask=MASK).take(numbers)
    torch.testing.assert_close(dense(batch.rows), torch.from_numpy(features()[numbers.numpy()]))
    assert batch.labels.tolist() == [0, 0, 0, 1]
    assert batch.weights.tolist() == [3.0, 1.0, 1.0, 1.5]
    assert batch.mask.tolist() == [[False, True], [True, False], [True, False], [False, True]]


@each_kind
@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_a_batch_splits_in_all_its_parts(kind, count):
    whole = data(kind, weights=WEIGHTS, mask=MASK)
    first, rest = whole.split(count)
    for part, own in ((first, slice(count)), (rest, slice(count, None))):
        torch.testing.assert_close(dense(part.rows), torch.from_numpy(features()[own]))
        assert torch.equal(part.labels, whole.labels[own])
        assert torch.equal(part.weights, WEIGHTS[own])
        assert torch.equal(part.mask, MASK[own])


def test_parts_that_are_not_there_stay_so():
    only_mask = data(mask=MASK)
    only_weights = data(weights=WEIGHTS)
    numbers = torch.tensor([3, 1])
    for batch in (only_mask.take(numbers), *only_mask.split(2)):
        assert batch.weights is None
        assert batch.mask is not None
    for batch in (only_weights.take(numbers), *only_weights.split(2)):
        assert batch.weights is not None
        assert batch.mask is None
    assert data().take(numbers)[2:] == (None, None)


def test_a_batch_of_several_labels_keeps_its_unknown_entries():
    labels = torch.tensor([[1.0, torch.nan], [0.0, 1.0], [torch.nan, 0.0]])
    whole = LinearData(as_rows(features(3)), labels)
    batch = whole.take(torch.tensor([2, 0]))
    assert batch.labels.isnan().tolist() == [[True, False], [False, True]]
    torch.testing.assert_close(batch.labels, labels[[2, 0]], equal_nan=True)


def test_a_batch_is_a_copy_of_the_data():
    whole = data(weights=WEIGHTS.clone(), mask=MASK.clone())
    batch = whole.take(torch.arange(6))
    for part in (batch.labels, batch.weights, batch.mask):
        part.zero_()
    assert whole.labels.tolist() == [0, 1, IGNORE_LABEL, 1, 0, 1]
    assert torch.equal(whole.weights, WEIGHTS)
    assert torch.equal(whole.mask, MASK)

import math
import re

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch.utils.data import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    default_collate,
)

from agra.train_set import TrainSet, as_labels, as_train_set, split_batch

X = torch.arange(12.0).reshape(6, 2)
Y = torch.tensor([0, 1, 2, 0, 1, -100])
ROWS = torch.tensor([4, 0, 4])


class Pairs(Dataset):
    """Items are (input, label, number), as a plain map-style Dataset gives them."""

    def __init__(self, labels=Y):
        self.given = labels

    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return X[row], self.given[row], row


class Offering(Pairs):
    def __init__(self, name, labels=Y):
        super().__init__(labels)
        setattr(self, name, labels)


class Dicts(Dataset):
    def __init__(self, name):
        self.name = name

    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return {"x": X[row], "twice": 2 * X[row], self.name: Y[row]}


def check_rows(train_set):
    inputs, labels = train_set.rows(ROWS)
    assert len(train_set) == 6
    assert (inputs.to_dense() if inputs.layout == torch.sparse_csr else inputs).tolist() == [
        [8, 9],
        [0, 1],
        [8, 9],
    ]
    assert labels.dtype == torch.int64
    assert labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "source",
    [
        (X, Y),
        [X, Y],
        (X.numpy(), Y.numpy()),
        (X.numpy(), Y.tolist()),
        (X.to_sparse_csr(), Y),
        (sparse.csr_matrix(X.numpy()), Y.numpy().astype(np.int32)),
        (pd.DataFrame(X.numpy().copy()), pd.Series(Y.numpy().copy())),
        TensorDataset(X, Y),
        TensorDataset(X, Y, torch.arange(6)),
        Pairs(),
        Offering("targets"),
        Subset(Offering("targets", Y), range(6)),
        Subset(TensorDataset(X, Y), [0, 1, 2, 3, 4, 5]),
        ConcatDataset([Subset(Pairs(), [0, 1]), Subset(Pairs(), [2, 3, 4, 5])]),
        [(X[row], Y[row]) for row in range(6)],
    ],
    ids=[
        "tensors",
        "list-of-two",
        "arrays",
        "array-and-list",
        "torch-csr",
        "scipy-csr",
        "pandas",
        "tensor-dataset",
        "tensor-dataset-with-ids",
        "pairs",
        "targets",
        "subset-of-targets",
        "subset-of-tensors",
        "concatenated",
        "list-of-items",
    ],
)
def test_every_source_gives_the_same_rows(source):
    check_rows(TrainSet(source))


def test_inputs_may_be_several_tensors():
    pair, labels = TrainSet(((X, 2 * X), Y)).rows(ROWS)
    assert torch.equal(pair[0], X[ROWS])
    assert torch.equal(pair[1], 2 * X[ROWS])
    named, _ = TrainSet(({"x": X, "table": torch.ones(2)}, Y)).rows(ROWS)
    assert torch.equal(named["x"], X[ROWS])
    assert named["table"].tolist() == [1, 1]
    assert labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", ["labels", "label"])
def test_items_may_be_dicts(name):
    inputs, labels = TrainSet(Dicts(name)).rows(ROWS)
    assert list(inputs) == ["x", "twice"]
    assert torch.equal(inputs["x"], X[ROWS])
    assert torch.equal(inputs["twice"], 2 * X[ROWS])
    assert labels.tolist() == [1, 0, 1]


def test_inputs_without_labels():
    with pytest.raises(ValueError, match="Expected `labels` for the inputs of `train_set`, got"):
        TrainSet((X, None))


def test_collate_brings_items_into_form():
    def swap(items):
        x, y, _ = default_collate(items)
        return {"inputs": -x, "labels": y}

    inputs, labels = TrainSet(Pairs(), collate=swap).rows(ROWS)
    assert torch.equal(inputs["inputs"], -X[ROWS])
    assert labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", ["targets", "labels"])
@pytest.mark.parametrize("form", [torch.Tensor.clone, torch.Tensor.numpy, torch.Tensor.tolist])
def test_labels_that_a_dataset_offers_are_known(name, form):
    assert torch.equal(TrainSet(Offering(name, form(Y))).labels, Y)


def test_labels_of_a_subset_are_those_of_its_rows():
    outer = Subset(Subset(Offering("targets"), [5, 3, 1]), [2, 0])
    assert TrainSet(outer).labels.tolist() == [1, -100]
    assert TrainSet(Subset(TensorDataset(X, Y), [2, 2])).labels.tolist() == [2, 2]


@pytest.mark.parametrize(
    "source",
    [Pairs(), Subset(Pairs(), [1, 2]), ConcatDataset([Pairs()]), Dicts("labels")],
    ids=["pairs", "subset", "concatenated", "dicts"],
)
def test_labels_that_a_dataset_keeps_to_itself_are_not_known(source):
    train_set = TrainSet(source)
    assert train_set.labels is None


def test_an_attribute_of_another_length_is_not_the_labels():
    source = Pairs()
    source.labels = ["cat", "dog", "bird"]  # class names
    assert TrainSet(source).labels is None


def test_labels_may_be_said():
    given = [2, 2, 2, 1, 1, 1]
    for source in (Pairs(), Offering("targets"), (X, Y)):
        train_set = TrainSet(source, labels=given)
        assert train_set.labels.tolist() == given
        assert train_set.rows(ROWS)[1].tolist() == [1, 2, 1]


def test_the_labels_of_a_row_are_those_of_its_item():
    class Odd(Offering):  # torchvision's target_transform
        def __getitem__(self, row):
            x, y, number = super().__getitem__(row)
            return x, y % 2, number

    _, labels = TrainSet(Odd("targets", [0, 1, 2, 3, 4, 5])).rows(torch.tensor([2, 3]))
    assert labels.tolist() == [0, 1]


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.bool_])
def test_labels_of_items_are_int64_too(kind):
    source = Pairs(np.array([0, 1, 1, 0, 1, 0]).astype(kind))
    labels = TrainSet(source).rows(ROWS)[1]
    assert labels.dtype == torch.int64
    assert labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([0, 1, 2], torch.int64),
        ([True, False, True], torch.int64),
        (np.array([0, 1, 2], dtype=np.uint8), torch.int64),
        (torch.tensor([0, 1, 2], dtype=torch.int32), torch.int64),
        (torch.tensor([True, False, True]), torch.int64),
        ([0.0, math.nan, 1.0], torch.float64),
        (np.eye(3, dtype=np.float32), torch.float32),
        (torch.eye(3, dtype=torch.float16), torch.float16),
        ([[0, 1], [1, -100], [1, 1]], torch.int64),
    ],
)
def test_integers_become_int64_and_floats_stay(labels, dtype):
    found = as_labels(labels)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.numpy(), np.asarray(labels))
    assert as_labels(found) is found


def test_labels_may_run_backwards():
    assert as_labels(np.array([2, 1, 0])[::-1]).tolist() == [0, 1, 2]


def test_read_only_labels_are_copied():
    fixed = np.array([0.5, 0.5])
    fixed.setflags(write=False)
    found = as_labels(fixed)
    found += 1
    assert fixed.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("batch", [(X, Y), [X, Y], (X, Y, "more")])
def test_a_batch_is_split_at_its_second_part(batch):
    inputs, labels = split_batch(batch)
    assert inputs is X
    assert labels is Y


def test_a_dict_is_split_by_name_and_labels_come_before_label():
    inputs, labels = split_batch({"label": X, "x": X, "labels": Y})
    assert list(inputs) == ["label", "x"]
    assert labels is Y


# refusals


class Endless(IterableDataset):
    def __iter__(self):
        yield X[0], Y[0]


class Counted(Endless):
    def __len__(self):
        return 6


@pytest.mark.parametrize(
    ("source", "kind"),
    [(3, "int"), (None, "NoneType"), (iter([1]), "list_iterator"), (object(), "object")],
)
def test_a_source_without_rows_is_refused(source, kind):
    text = rf"\(inputs, labels\) or a map-style Dataset with rows by number, got {kind}\."
    with pytest.raises(TypeError, match=text):
        TrainSet(source)


@pytest.mark.parametrize("source", [Endless(), Counted()], ids=["endless", "counted"])
def test_a_dataset_without_rows_by_number_is_refused(source):
    with pytest.raises(TypeError, match=r"rows by number, got an IterableDataset\."):
        TrainSet(source)


@pytest.mark.parametrize(
    "source",
    [
        (torch.empty(0, 2), []),
        TensorDataset(torch.empty(0, 2), torch.empty(0)),
        [],
        Subset(Pairs(), []),
        Subset(Offering("targets"), []),
    ],
    ids=["arrays", "tensors", "list", "subset", "subset-with-targets"],
)
def test_an_empty_source_is_refused(source):
    with pytest.raises(ValueError, match=r"`train_set` to hold samples, got an empty one\."):
        TrainSet(source)


def test_another_number_of_labels_is_refused():
    text = r"`labels` to have one entry per sample of `train_set` \(6\), got 2\."
    with pytest.raises(ValueError, match=text):
        TrainSet((X, [0, 1]))
    with pytest.raises(ValueError, match=text):
        TrainSet(Pairs(), labels=[0, 1])


def test_inputs_without_labels_are_refused_at_once():
    with pytest.raises(ValueError, match=r"`labels` .* got None"):
        TrainSet((X, None))


def test_labels_that_are_no_numbers_are_refused():
    text = r"`labels` to be numbers, got <U3; encode class names as 0, 1, 2, \.\.\. first\."
    with pytest.raises(TypeError, match=text):
        TrainSet((X[:2], ["cat", "dog"]))


@pytest.mark.parametrize(
    ("batch", "kind"),
    [(X, "Tensor"), ({"x": X}, "dict"), ((X,), "tuple"), ("text", "str")],
    ids=["tensor", "dict", "single", "text"],
)
def test_items_whose_labels_cannot_be_told_are_refused(batch, kind):
    text = f"(input, label, ...) or dicts with 'labels', got {kind}; pass `collate`"
    with pytest.raises(TypeError, match=re.escape(text)):
        split_batch(batch)


def test_inputs_that_are_no_numbers_are_refused():
    with pytest.raises(TypeError, match="encode it first"):
        TrainSet((["some", "text"], [0, 1]))


@pytest.mark.parametrize("source", [torch.eye(3), np.eye(3)], ids=["tensor", "array"])
def test_inputs_alone_are_refused_at_once(source):
    with pytest.raises(TypeError, match=r"`train_set` to be \(inputs, labels\), got inputs alone"):
        TrainSet(source)


def test_a_tuple_of_three_is_no_list_of_items():
    text = r"to be a pair \(inputs, labels\), got a tuple of 3; ids need not be given"
    with pytest.raises(TypeError, match=text):
        TrainSet((torch.eye(3), torch.arange(3), torch.arange(3)))


def test_labels_are_settled_unless_items_speak_for_themselves():
    class Transformed(Dataset):
        targets = (1, 2)

        def __len__(self):
            return 2

        def __getitem__(self, row):
            return torch.zeros(1), self.targets[row] - 1

    assert TrainSet((torch.eye(2), [0, 1])).settled
    assert not TrainSet(Transformed()).settled
    assert TrainSet(Transformed(), labels=[0, 1]).settled


def test_missing_classes():
    assert TrainSet((torch.eye(3), [0, 2, -100])).missing_classes(4) == [1, 3]
    assert TrainSet((torch.eye(3), torch.eye(3))).missing_classes(4) == []
    items = [(torch.zeros(1), 0) for _ in range(3)]
    assert TrainSet(items).missing_classes(2) == []  # labels are not known beforehand


def test_a_train_set_has_its_own_labels():
    own = TrainSet((torch.eye(3), [0, 1, 2]))
    assert as_train_set(own) is own
    assert len(as_train_set((torch.eye(3), [0, 1, 2]))) == 3
    with pytest.raises(ValueError, match="Expected `labels` to be None with a TrainSet, which has"):
        as_train_set(own, labels=[0, 1, 2])

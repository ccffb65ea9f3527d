import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import nn

from agra.inputs import (
    all_finite,
    as_inputs,
    call,
    check_inputs,
    check_outputs,
    few_rows,
    num_rows,
    take,
    tensors,
    transform,
)

repeatable = settings(max_examples=60, deadline=None, derandomize=True)


def numbers(*shape):
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)


def same(left, right):
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return torch.equal(left, right)


# as_inputs


def test_tensors_come_back_themselves():
    x = numbers(2, 3)
    assert as_inputs(x) is x
    assert as_inputs({"a": x})["a"] is x


@pytest.mark.parametrize(
    "kind", ["float64", "float32", "float16", "int64", "int32", "uint8", "bool"]
)
def test_arrays_become_tensors_of_the_same_numbers_and_type(kind):
    array = np.array([[0, 1], [1, 2]]).astype(kind)
    found = as_inputs(array)
    assert found.numpy().dtype == array.dtype
    assert (found.numpy() == array).all()


def test_the_structure_stays_and_lists_of_parts_become_tuples():
    found = as_inputs({"pair": [np.eye(2), (torch.ones(2), np.zeros(2))]})
    assert isinstance(found["pair"], tuple)
    assert isinstance(found["pair"][1], tuple)
    assert same(
        found,
        {"pair": (torch.eye(2).double(), (torch.ones(2), torch.zeros(2).double()))},
    )


def test_a_list_of_numbers_is_one_array():
    assert as_inputs([1.0, 2.0]).tolist() == [1, 2]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_scipy_matrices_become_csr(form):
    matrix = sparse.random(5, 4, density=0.5, format=form, random_state=0)
    found = as_inputs(matrix)
    assert found.layout == torch.sparse_csr
    assert (found.to_dense().numpy() == matrix.toarray()).all()


def test_scipy_rows_need_not_be_sorted_and_may_repeat_a_column():
    matrix = sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3)
    )
    assert as_inputs(matrix).to_dense().tolist() == [[2, 0, 1], [0, 7, 0]]
    assert matrix.nnz == 4  # the caller's matrix is as it was
    assert matrix.indices.tolist() == [2, 0, 1, 1]


def test_arrays_may_run_backwards():
    assert as_inputs(np.arange(3.0)[::-1]).tolist() == [2, 1, 0]


def test_read_only_arrays_are_copied():
    frame = pd.DataFrame({"a": [1.0, 2.0]})  # pandas hands out read-only arrays
    array = np.ones(2)
    array.setflags(write=False)
    for given_array in (frame, array):
        found = as_inputs(given_array)
        assert (found.numpy() == np.asarray(given_array)).all()
        before = np.array(given_array)
        found += 1
        assert (np.asarray(given_array) == before).all()


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (["a text", "another"], r"got list of <U7; encode it first\."),
        (np.array([None, 1]), r"got ndarray of object; encode it first\."),
        ({"x": np.array(["a"])}, r"got ndarray of <U1; encode it first\."),
        (None, r"got NoneType of object"),
    ],
)
def test_what_holds_no_numbers_is_refused(inputs, text):
    with pytest.raises(TypeError, match=r"`inputs` to be tensors, arrays or sparse .*" + text):
        as_inputs(inputs)


# tensors, transform, num_rows


def test_tensors_come_in_order_from_any_depth():
    a, b, c, d = (torch.tensor(float(k)) for k in range(4))
    assert [t.item() for t in tensors({"x": (a, [b, {"y": c}]), "note": "text", "z": d})] == [
        0,
        1,
        2,
        3,
    ]


def test_transform_changes_tensors_and_nothing_else():
    found = transform({"x": (torch.ones(1), [torch.ones(2)]), "note": "text"}, lambda t: t + 1)
    assert found["note"] == "text"
    assert same(found["x"], (2 * torch.ones(1), (2 * torch.ones(2),)))


@pytest.mark.parametrize(
    "inputs",
    [
        numbers(3, 2),
        (numbers(3), numbers(4, 2)),
        {"x": numbers(3, 1, 1)},
        [numbers(3)],
        numbers(3, 2).to_sparse_csr(),
    ],
    ids=["tensor", "tuple", "dict", "list", "csr"],
)
def test_the_first_tensor_has_one_row_per_sample(inputs):
    assert num_rows(inputs) == 3


@pytest.mark.parametrize("inputs", [None, "text", (), {}, torch.tensor(1.0), np.ones(3)], ids=repr)
def test_what_has_no_rows_is_refused(inputs):
    text = rf"one row per sample, got {type(inputs).__name__}\."
    with pytest.raises(TypeError, match=text):
        num_rows(inputs)


# take


@st.composite
def selections(draw):
    size = draw(st.integers(1, 7))
    return size, draw(st.lists(st.integers(0, size - 1), max_size=10))


@repeatable
@given(selections(), st.lists(st.integers(1, 3), max_size=2))
def test_take_gives_those_rows_of_a_tensor(selection, trailing):
    size, rows = selection
    x = numbers(size, *trailing)
    assert take(x, torch.tensor(rows, dtype=torch.int64)).tolist() == [x[r].tolist() for r in rows]


@repeatable
@given(
    selections(),
    st.integers(1, 6),
    st.floats(0, 1),
    st.integers(0, 99),
    st.sampled_from([np.int32, np.int64]),
    st.sampled_from([np.float32, np.float64]),
)
def test_take_gives_the_rows_that_scipy_gives(selection, width, density, seed, index, kind):
    size, rows = selection
    matrix = sparse.random(size, width, density=density, format="csr", random_state=seed)
    matrix = matrix.astype(kind)
    matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    found = take(as_inputs(matrix), torch.tensor(rows, dtype=torch.int64))
    expected = matrix[rows]
    assert found.layout == torch.sparse_csr
    assert found.shape == expected.shape
    assert found.values().numpy().dtype == kind
    assert found.crow_indices().tolist() == expected.indptr.tolist()
    assert found.col_indices().tolist() == expected.indices.tolist()
    assert found.values().tolist() == expected.data.tolist()
    # the invariants that take() does not have checked
    torch.sparse_csr_tensor(
        found.crow_indices(),
        found.col_indices(),
        found.values(),
        size=found.shape,
        check_invariants=True,
    )


def test_take_answers_on_the_device_of_the_matrix():
    matrix, rows = torch.eye(3).to_sparse_csr(), torch.tensor([2, 0])
    with torch.device("meta"):  # stands for a default device other than the matrix'
        found = take(matrix, rows)
    assert found.device.type == "cpu"
    assert found.to_dense().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_take_goes_into_tuples_and_dicts_and_mixes_layouts():
    dense, csr = numbers(3, 2), torch.eye(3).to_sparse_csr()
    found = take({"x": dense, "pair": (csr, [numbers(3)])}, torch.tensor([2, 0]))
    assert found["x"].tolist() == [[4, 5], [0, 1]]
    assert found["pair"][0].to_dense().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert found["pair"][1][0].tolist() == [2, 0]


def test_tensors_without_a_row_per_sample_are_shared():
    table, scale = numbers(5, 2), torch.tensor(3.0)
    found = take((numbers(3), table, scale), torch.tensor([1]))
    assert found[0].tolist() == [1]
    assert found[1] is table
    assert found[2] is scale


def test_the_number_of_samples_may_be_said():
    table, x = numbers(2, 2), numbers(3)
    found = take((table, x), torch.tensor([1]), total=3)
    assert found[0] is table
    assert found[1].tolist() == [1]


# call


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))

    def forward(self, left, right):
        return (left - 2 * right) * self.weight


@pytest.mark.parametrize(
    "inputs",
    [
        (torch.ones(2, 3), torch.ones(2, 3) * 5),
        [torch.ones(2, 3), torch.ones(2, 3) * 5],  # as default_collate makes of tuples
        {"right": torch.ones(2, 3) * 5, "left": torch.ones(2, 3)},
    ],
    ids=["tuple", "list", "dict"],
)
def test_tuples_are_positional_arguments_and_dicts_are_keywords(inputs):
    assert call(Sum(), inputs).tolist() == [[-18] * 3] * 2
    assert call(Sum(), inputs, {"weight": torch.tensor(1.0)}).tolist() == [[-9] * 3] * 2


def test_a_tensor_is_the_only_argument_and_other_parameters_take_their_place():
    model = nn.Linear(2, 2, bias=False)
    assert torch.equal(call(model, torch.eye(2)), model(torch.eye(2)))
    assert call(model, torch.eye(2), {"weight": 3 * torch.eye(2)}).tolist() == [[3, 0], [0, 3]]


@pytest.mark.parametrize("parameters", [None, {}])
def test_an_object_with_logits_gives_its_logits(parameters):
    class Head(nn.Module):
        def forward(self, ids, mask):
            return SimpleNamespace(logits=ids * mask, loss=None)

    found = call(Head(), {"ids": torch.ones(2, 3), "mask": torch.ones(2, 1)}, parameters)
    assert torch.equal(found, torch.ones(2, 3))


class Returns(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return self.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.ones(4), r"shape \(4, number of classes\) for 4 inputs, got \(4,\)\."),
        (torch.ones(3, 2), r"for 4 inputs, got \(3, 2\)\."),
        (torch.ones(4, 2, 2), r"for 4 inputs, got \(4, 2, 2\)\."),
        ((torch.ones(4, 2),), r"for 4 inputs, got tuple\."),
        (torch.ones(4, 0), r"at least one output per sample, got 0\."),
    ],
)
def test_outputs_of_another_form_are_refused(value, text):
    with pytest.raises(ValueError, match=r"^Expected `model` to return .*" + text):
        call(Returns(value), torch.ones(4, 3))


# the checks


@pytest.mark.parametrize(
    "inputs",
    [
        torch.ones(2, 3),
        torch.ones(2, 3).to_sparse_csr(),
        torch.ones(2, 3, dtype=torch.int64),
        (torch.ones(2, 3), torch.ones(2, dtype=torch.bool)),
        {"x": torch.ones(2, 3)},
    ],
    ids=["tensor", "csr", "integers", "tuple", "dict"],
)
def test_inputs_that_fit_the_model_pass(inputs):
    check_inputs(nn.Linear(3, 2), inputs, torch.tensor([0, 1]))


def test_a_model_without_parameters_takes_any_floating_type():
    check_inputs(nn.ReLU(), torch.ones(2, 3).double(), torch.tensor([0, 1]))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("layout", ["dense", "csr", "second"])
def test_inputs_that_are_not_finite_are_refused(value, layout):
    x = torch.ones(2, 3)
    x[1, 1] = value
    inputs = {"dense": x, "csr": x.to_sparse_csr(), "second": (torch.ones(2, 3), x)}[layout]
    with pytest.raises(ValueError, match=r"`inputs` to be finite, got NaN or infinity\."):
        check_inputs(nn.Linear(3, 2), inputs, torch.tensor([0, 1]))


def test_inputs_of_another_floating_type_are_refused():
    text = r"parameters \(torch.float32\), got torch.float64; convert one of them with \.to\(\)\."
    with pytest.raises(ValueError, match=text):
        check_inputs(nn.Linear(3, 2), torch.ones(2, 3).double(), torch.tensor([0, 1]))


def test_under_autocast_another_floating_type_passes():
    with torch.autocast("cpu"):
        check_inputs(nn.Linear(3, 2), torch.ones(2, 3).bfloat16(), torch.tensor([0, 1]))


def test_inputs_on_another_device_are_refused():
    inputs = torch.ones(2, 3, dtype=torch.int64, device="meta")
    with pytest.raises(ValueError, match=r"`inputs` on the device of the model \(cpu\), got meta"):
        check_inputs(nn.Linear(3, 2), inputs, torch.tensor([0, 1]))


def test_labels_on_another_device_are_refused():
    labels = torch.zeros(2, dtype=torch.int64, device="meta")
    with pytest.raises(ValueError, match=r"device of `inputs` \(cpu\), got meta\."):
        check_inputs(nn.Linear(3, 2), torch.ones(2, 3), labels)


@pytest.mark.parametrize("labels", [torch.tensor([0, 1, 1]), torch.ones(1, 2), torch.tensor(1)])
def test_another_number_of_labels_than_of_inputs_is_refused(labels):
    with pytest.raises(ValueError, match=r"one entry per .*2.*, got shape"):
        check_inputs(nn.Linear(3, 2), torch.ones(2, 3), labels)


@pytest.mark.parametrize("inputs", [np.ones((2, 3)), None, ()], ids=["array", "none", "empty"])
def test_inputs_that_hold_no_tensor_are_refused_in_words(inputs):
    with pytest.raises(TypeError, match=r"`inputs` to be a tensor, or a tuple or dict of tensors"):
        check_inputs(nn.Linear(3, 2), inputs, torch.tensor([0, 1]))


def test_finite_outputs_pass():
    check_outputs(nn.Linear(2, 2), torch.ones(3, 2))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_outputs_that_are_not_finite_name_the_parameter_to_blame(value):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with torch.no_grad():
        model[1].bias[0] = value
    text = r"finite model weights, .* in parameter '1\.bias'; lower the learning rate"
    with pytest.raises(ValueError, match=text):
        check_outputs(model, torch.tensor([[value, 0.0]]))


def test_outputs_that_are_not_finite_from_finite_weights_point_at_the_forward():
    text = r"finite model outputs, got NaN or infinity from finite weights .* model's forward\."
    with pytest.raises(ValueError, match=text):
        check_outputs(nn.Linear(2, 2), torch.tensor([[math.inf, 0.0]]))


def test_finite_numbers_whose_sum_overflows_are_finite():
    assert all_finite(torch.full((4,), 3e38))
    assert all_finite(torch.empty(0))
    assert not all_finite(torch.tensor([1.0, torch.inf]))
    assert not all_finite(torch.tensor([torch.inf, -torch.inf]))
    assert not all_finite(torch.tensor([1.0, torch.nan]))


def test_coo_matrices_become_csr_where_data_comes_in_and_are_refused_where_it_is_judged():
    coo = torch.eye(3).to_sparse()
    assert as_inputs(coo).layout == torch.sparse_csr
    text = (
        r"`inputs` to be dense or CSR, got torch.sparse_coo; convert them with \.to_sparse_csr\(\)"
    )
    with pytest.raises(ValueError, match=text):
        check_inputs(nn.Linear(3, 2), coo, torch.tensor([0, 1, 1]))


def test_floating_inputs_on_another_device_are_refused_before_they_are_read():
    inputs = torch.ones(2, 3, device="meta")
    with pytest.raises(ValueError, match=r"`inputs` on the device of the model \(cpu\), got meta"):
        check_inputs(nn.Linear(3, 2), inputs, torch.tensor([0, 1]))


@pytest.mark.parametrize("labels", [[0, 1], np.array([0, 1]), None])
def test_labels_that_are_no_tensor_are_refused(labels):
    text = rf"`labels` to be a tensor, got {type(labels).__name__}; .* torch\.as_tensor\(\)\."
    with pytest.raises(TypeError, match=text):
        check_inputs(nn.Linear(3, 2), torch.ones(2, 3), labels)


def test_few_rows():
    assert few_rows(numbers(3, 1)).tolist() == [[0], [1]]
    assert few_rows((numbers(1), numbers(1, 2)))[1].tolist() == [[0, 1]]
    assert few_rows(numbers(0, 2), 1).shape == (0, 2)

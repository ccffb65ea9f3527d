"""Rows, dense or sparse, equal plain NumPy, and leave the caller's matrix alone."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from agra.rows import as_rows

repeatable = settings(max_examples=25, deadline=None, derandomize=True)


# one matrix in many guises


def csr(dense, kind=np.int32):
    matrix = sparse.csr_array(dense)
    # the constructor would choose the narrower type by itself
    matrix.indices, matrix.indptr = matrix.indices.astype(kind), matrix.indptr.astype(kind)
    return matrix


def changed_csr(dense, change, kind=np.int32):
    """CSR with the entries (columns, values) of every row changed."""
    entries = [change(np.flatnonzero(row), row[np.flatnonzero(row)]) for row in dense]
    columns = np.concatenate([np.empty(0, kind), *(part[0] for part in entries)]).astype(kind)
    values = np.concatenate([np.empty(0), *(part[1] for part in entries)]).astype(dense.dtype)
    starts = np.cumsum([0, *(len(part[0]) for part in entries)]).astype(kind)
    matrix = sparse.csr_array((values, columns, starts), shape=dense.shape)
    matrix.indices, matrix.indptr = columns, starts
    return matrix


def turned_round(columns, values):
    return columns[::-1], values[::-1]


def in_two_parts(columns, values):
    return np.tile(columns[::-1], 2), np.concatenate([values[::-1] / 4, values[::-1] * 0.75])


def with_stored_zeros(dense):
    def add_them(columns, values):
        free = np.setdiff1d(np.arange(dense.shape[1]), columns)[:2]
        return np.append(columns, free), np.append(values, np.zeros(len(free)))

    return changed_csr(dense, add_them)


def read_only(dense):
    dense = dense.copy()
    dense.flags.writeable = False
    return dense


GUISES = {
    "tensor": lambda dense: torch.from_numpy(dense.copy()),
    "array": np.copy,
    "columns-first": np.asfortranarray,
    "every-second-row": lambda dense: np.repeat(dense, 2, axis=0)[::2],
    "upside-down": lambda dense: dense[::-1].copy()[::-1],
    "read-only": read_only,
    "csr": csr,
    "csr-matrix": lambda dense: sparse.csr_matrix(dense),
    "csr-int64": lambda dense: csr(dense, np.int64),
    "unsorted": lambda dense: changed_csr(dense, turned_round),
    "unsorted-int64": lambda dense: changed_csr(dense, turned_round, np.int64),
    "duplicates": lambda dense: changed_csr(dense, in_two_parts),
    "duplicates-int64": lambda dense: changed_csr(dense, in_two_parts, np.int64),
    "stored-zeros": with_stored_zeros,
    "coo": sparse.coo_array,
    "csc": sparse.csc_array,
}
SPARSE = [name for name, guise in GUISES.items() if sparse.issparse(guise(np.eye(3)))]
each_guise = pytest.mark.parametrize("guise", GUISES)


def matrix(size, width, density=0.5, seed=0, dtype=np.float64):
    generator = np.random.default_rng(seed)
    dense = generator.normal(size=(size, width)) * (generator.random((size, width)) < density)
    return dense.astype(dtype)


def parts_of(features):
    """The arrays behind a matrix."""
    if sparse.issparse(features):
        if features.format == "coo":
            return [features.data, *features.coords]
        return [features.data, features.indices, features.indptr]
    return [np.asarray(features)]


def check(rows, dense, num_outputs=2):
    """All that a linear model asks of rows, against NumPy."""
    size, width = dense.shape
    generator = np.random.default_rng(1)
    weight = generator.normal(size=(width, num_outputs)).astype(dense.dtype)
    back = generator.normal(size=(size, num_outputs)).astype(dense.dtype)
    tolerance = 1e-12 if dense.dtype == np.float64 else 1e-5
    assert rows.shape == dense.shape
    assert len(rows) == size
    for found, expected in [
        (rows.times(torch.from_numpy(weight)), dense @ weight),
        (rows.times(torch.from_numpy(weight.T.copy()).T), dense @ weight),  # the other way round
        (rows.pull_back(torch.from_numpy(back)), dense.T @ back),
        (rows.squared_norms(), (dense**2).sum(axis=1)),
    ]:
        assert found.numpy().dtype == dense.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


# equal to NumPy


@each_guise
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("size", "width"), [(7, 5), (1, 3), (0, 3), (4, 0)])
def test_products_and_norms_equal_numpy(guise, dtype, size, width):
    dense = matrix(size, width, dtype=np.float64 if dtype == torch.float64 else np.float32)
    check(as_rows(GUISES[guise](dense), dtype), dense)


@each_guise
def test_any_taking_and_splitting_equals_numpy(guise):
    @repeatable
    @given(
        size=st.integers(1, 8),
        width=st.integers(1, 5),
        density=st.sampled_from([0.0, 0.3, 1.0]),
        seed=st.integers(0, 999),
        data=st.data(),
    )
    def run(size, width, density, seed, data):
        dense = matrix(size, width, density, seed)
        rows = as_rows(GUISES[guise](dense), torch.float64)
        numbers = data.draw(st.lists(st.integers(0, size - 1), max_size=10))  # repeated, unordered
        count = data.draw(st.integers(0, len(numbers)))
        again = data.draw(st.permutations(range(len(numbers) - count)))
        check(rows, dense)
        taken, expected = rows.take(torch.tensor(numbers, dtype=torch.long)), dense[numbers]
        check(taken, expected)
        first, rest = taken.split(count)
        check(first, expected[:count])
        check(rest, expected[count:])
        middle = len(rest) // 2
        check(rest.take(torch.tensor(again, dtype=torch.long)), expected[count:][list(again)])
        check(rest.split(middle)[1], expected[count:][middle:])

    run()


@pytest.mark.parametrize("guise", ["array", *SPARSE])
def test_empty_rows_and_columns_of_zeros(guise):
    dense = matrix(9, 6, density=1.0)
    dense[[0, 3, 4, 8]], dense[:, [0, 2, 5]] = 0, 0
    rows = as_rows(GUISES[guise](dense), torch.float64)
    check(rows, dense)
    assert rows.squared_norms()[[0, 3, 4, 8]].tolist() == [0, 0, 0, 0]
    assert (rows.pull_back(torch.ones(9, 2, dtype=torch.float64))[[0, 2, 5]] == 0).all()
    for numbers in ([0, 3], [8], [0, 1, 8], [1, 0, 0, 2], []):
        check(rows.take(torch.tensor(numbers, dtype=torch.long)), dense[numbers])
    for count in range(10):
        first, rest = rows.split(count)
        check(first, dense[:count])
        check(rest, dense[count:])


@each_guise
def test_batches_of_many_entries_equal_numpy(guise):
    dense = matrix(300, 40)
    dense[::7] = 0
    rows = as_rows(GUISES[guise](dense), torch.float64)
    numbers = torch.randint(300, (700,), generator=torch.Generator().manual_seed(0))
    taken, expected = rows.take(numbers), dense[numbers.numpy()]
    assert np.count_nonzero(expected) > 2**13
    check(taken, expected)
    first, rest = taken.split(350)
    check(first, expected[:350])
    check(rest.take(torch.arange(349, -1, -1)), expected[350:][::-1])
    check(rows, dense)  # still what they were


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_norms_of_very_many_rows(kind):
    size = 2**17 + 3  # they are computed some 65,536 at a time
    generator = np.random.default_rng(0)
    filled = generator.permutation(size)[:5000]
    filled = np.union1d(filled, [0, 2**16 - 1, 2**16 + 1, 2**17 - 1, 2**17, size - 1])
    filled = np.setdiff1d(filled, [2**16, size - 2])
    values = generator.normal(size=(len(filled), 2))
    columns = np.tile([0, 3], len(filled))
    counts = np.zeros(size, dtype=kind)
    counts[filled] = 2
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(kind)
    features = sparse.csr_array((values.ravel(), columns.astype(kind), starts), shape=(size, 4))
    features.indices, features.indptr = columns.astype(kind), starts
    expected = np.zeros(size)
    expected[filled] = (values**2).sum(axis=1)
    rows = as_rows(features, torch.float64)
    np.testing.assert_allclose(rows.squared_norms().numpy(), expected, rtol=1e-12)
    rest = rows.split(2**16 + 1)[1]
    np.testing.assert_allclose(rest.squared_norms().numpy(), expected[2**16 + 1 :], rtol=1e-12)


@pytest.mark.parametrize("guise", ["array", "csr"])
def test_batches_of_one_size_do_not_get_in_each_others_way(guise):
    dense = matrix(12, 4)
    rows = as_rows(GUISES[guise](dense), torch.float64)
    other = as_rows(GUISES[guise](dense * 3), torch.float64)
    weight = torch.ones(4, 2, dtype=torch.float64)
    numbers = [torch.arange(0, 6), torch.arange(6, 12)]
    batches = [rows.take(numbers[0]), rows.take(numbers[1]), other.take(numbers[0])]
    results = [batch.times(weight) for batch in batches]
    for _ in range(2):
        check(batches[0], dense[:6])
        check(batches[1], dense[6:])
        check(batches[2], 3 * dense[:6])
    for result, batch in zip(results, batches, strict=True):  # earlier results stay what they were
        assert torch.equal(result, batch.times(weight))


# types


def test_rows_of_lists_and_of_whole_numbers():
    check(as_rows([[1, 0], [2, 3]]), np.array([[1, 0], [2, 3]], dtype=np.float32))
    for kind in (np.int64, np.uint8, bool, np.float16):
        dense = np.array([[1, 0, 1], [0, 0, 0]], dtype=kind)
        for features in (dense, torch.from_numpy(dense), sparse.csr_array(dense.astype(float))):
            check(as_rows(features), dense.astype(np.float32))
    whole = sparse.csr_array(np.array([[1, 0, 7], [0, 0, 0]]))
    check(as_rows(whole, torch.float64), whole.toarray().astype(np.float64))


@example(values=[2**24 + 1])
@given(values=st.lists(st.integers(2**24, 2**40), min_size=1, max_size=3))
def test_whole_numbers_keep_what_the_floating_type_holds(values):
    for features in (np.array([values]), torch.tensor([values]), sparse.csr_array([values])):
        weight = torch.eye(len(values), dtype=torch.float64)
        assert as_rows(features, torch.float64).times(weight).tolist() == [values]


# the caller's matrix


@each_guise
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_nothing_of_the_callers_matrix_is_modified(guise, dtype):
    features = GUISES[guise](matrix(6, 4))
    before = [part.copy() for part in parts_of(features)]
    kinds = [part.dtype for part in parts_of(features)]
    rows = as_rows(features, dtype)
    taken = rows.take(torch.tensor([5, 0, 0]))
    for batch in (rows, taken, *rows.split(2)):
        batch.times(torch.ones(4, 3, dtype=dtype)).add_(1)
        batch.pull_back(torch.ones(len(batch), 3, dtype=dtype)).add_(1)
        batch.squared_norms().add_(1)
    after = parts_of(features)
    assert [part.dtype for part in after] == kinds
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def products(rows):
    return rows.times(torch.ones(rows.shape[1], 1, dtype=torch.float64)).flatten()


@pytest.mark.parametrize("guise", ["tensor", "array", "columns-first", "csr", "csr-int64"])
def test_what_fits_already_is_not_copied(guise):
    features = GUISES[guise](matrix(6, 4, density=1.0))
    rows = as_rows(features, torch.float64)
    halves = rows.split(2)
    taken = rows.take(torch.arange(6))
    before = products(rows)
    parts_of(features)[0][...] *= 2  # seen through the rows: they are the same numbers
    torch.testing.assert_close(products(rows), 2 * before)
    torch.testing.assert_close(torch.cat([products(half) for half in halves]), 2 * before)
    torch.testing.assert_close(products(taken), before)  # a batch is its own


@pytest.mark.parametrize("guise", ["unsorted", "duplicates", "coo", "read-only"])
def test_what_does_not_fit_is_copied(guise):
    features = GUISES[guise](matrix(6, 4, density=1.0))
    rows = as_rows(features, torch.float64)
    before = products(rows)
    values = parts_of(features)[0]
    values.flags.writeable = True
    values[...] *= 2
    assert torch.equal(products(rows), before)

"""Matrices and LIBSVM files: what is read, and what is refused."""

import gzip
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from agra import IGNORE_LABEL
from agra.data.readers.libsvm import read_libsvm
from agra.data.readers.matrices import read_matrices, votes_of_rules

X = np.arange(6.0).reshape(3, 2)
L = np.array([[1, -1, 1], [-1, -1, 0], [0, 1, 0]])


def refuses(message, error=ValueError):
    """The message, with " ... " for anything."""
    return pytest.raises(error, match=" .*".join(map(re.escape, message.split(" ... "))))


@pytest.fixture
def saved(tmp_path):
    """Save an array, get its path."""

    def save(array, name):
        path = tmp_path / name
        if name.endswith(".csv"):
            np.savetxt(path, array, delimiter=",", fmt="%g")
        elif sparse.issparse(array):
            sparse.save_npz(path, array)
        elif name.endswith(".npz"):
            np.savez(path, array)
        else:
            np.save(path, array)
        return path

    return save


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv"])
def test_features_labels_and_votes_in_files(saved, name):
    data = read_matrices(
        saved(X, f"features-{name}"),
        labels=saved(np.array([0, 2, IGNORE_LABEL]), f"labels-{name}"),
        true_labels=saved(np.array([0, 1, 1]), f"true-{name}"),
        votes=saved(L, f"votes-{name}"),
        split="test",
    )
    np.testing.assert_array_equal(data.inputs, X)
    np.testing.assert_array_equal(data.votes, L)
    assert data.labels.tolist() == [0, 2, IGNORE_LABEL]
    assert data.true_labels.tolist() == [0, 1, 1]
    assert data.classes == ("0", "1", "2")
    assert data.split == "test"


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_features_become_rows(saved, form):
    matrix = sparse.random(5, 7, 0.4, format=form, random_state=0)
    for source in (matrix, saved(matrix, "x.npz")):
        data = read_matrices(source, labels=[0, 1, 0, 1, 0])
        assert data.inputs.format == "csr"
        np.testing.assert_array_equal(data.inputs.toarray(), matrix.toarray())


def test_several_labels(saved):
    y = np.array([[1, 0], [0, np.nan], [1, 1]])
    data = read_matrices(X, labels=saved(y, "y.npy"), classes=["warm", "wet"])
    np.testing.assert_array_equal(data.labels, y)
    rows = read_matrices(X, labels=sparse.csr_matrix(np.nan_to_num(y)))
    np.testing.assert_array_equal(rows.labels, np.nan_to_num(y))
    assert rows.classes == ("0", "1")


def test_snorkel_votes_in_csv(tmp_path):
    path = tmp_path / "L.csv"
    for header, functions in (("", "012"), ("links,words,caps\n", ["links", "words", "caps"])):
        path.write_text(header + "1,-1,1\n-1,-1,0\n0,1,0\n")
        data = read_matrices(X, votes=path)
        np.testing.assert_array_equal(data.votes, L)
        assert data.functions == tuple(functions)
        assert data.labels.tolist() == [1, 0, 0]
    path.write_text(",links\n0,1\n1,-1\n2,0\n")
    assert read_matrices(X, votes=path).votes.tolist() == [[1], [-1], [0]]


def test_knodle_rules(saved):
    rng = np.random.default_rng(0)
    z = (rng.random((50, 6)) < 0.3).astype(float)
    t = np.eye(3)[rng.integers(3, size=6)]
    expected = [
        [int(t[rule].argmax()) if z[row, rule] else -1 for rule in range(6)] for row in range(50)
    ]
    explicit = sparse.csr_matrix(np.ones_like(t))
    explicit.data[:] = t.ravel()  # zeros that are stored
    for matches, rules in ((z, t), (sparse.coo_matrix(z), explicit), (z > 0, t.astype(int))):
        assert votes_of_rules(matches, rules).tolist() == expected
    paths = saved(sparse.csr_matrix(z), "z.npz"), saved(t, "t.npy")
    data = read_matrices(rng.normal(size=(50, 4)), votes=paths[0], rule_classes=paths[1])
    assert data.votes.tolist() == expected
    assert data.classes == ("0", "1", "2")


def test_rules_that_are_refused():
    with refuses(
        "Expected every rule in `rule_classes` to speak for one class, got rule 1 for cla"
    ):
        votes_of_rules(np.eye(2), [[1, 0], [1, 1]])
    with refuses("to speak for one class, got rule 0 for classes []; leave it out"):
        votes_of_rules(np.eye(2), [[0, 0], [1, 0]])
    with refuses("Expected one row of `rule_classes` per column of `votes` (2), got 3"):
        votes_of_rules(np.eye(2), np.eye(3))
    for wrong in (np.eye(2) * 2, np.full((2, 2), np.nan), sparse.csr_matrix([[0, -1], [0, 0]])):
        with refuses("Expected `votes` to be a matrix of 0 and 1, got"):
            votes_of_rules(wrong, np.eye(2))
    with refuses("Expected `rule_classes` to be a matrix of 0 and 1, got 1 dimensions"):
        votes_of_rules(np.eye(2), [0, 1])
    with refuses("Expected `votes` beside `rule_classes`, which say what rules match"):
        read_matrices(X, labels=[0, 1, 0], rule_classes=np.eye(2))


def test_matrices_that_are_refused():
    with refuses("Expected `labels` or `votes` beside `features`, got neither"):
        read_matrices(X)
    with refuses("Expected `votes` to be dense, got a sparse matrix, whose zeros would be votes"):
        read_matrices(X, votes=sparse.csr_matrix(L))
    with refuses("Expected `votes` to be whole numbers, got 0.5 in row 1, column 0"):
        read_matrices(X, votes=[[1], [0.5], [1]])
    with refuses("Expected `labels` to be whole numbers, got nan in row 2"):
        read_matrices(X, labels=[0, 1, np.nan])
    with refuses(
        "Expected `votes` to be class indices in [0, 1], or -1 for none, got 2 in row 0, function 0"
    ):
        read_matrices(X, votes=L + 1, classes=["a", "b"])
    with refuses("Expected `features` to be an array of numbers, got <U1"):
        read_matrices([["a"]], labels=[0])
    for wrong in (np.array([[0, 1], [2, 3], [np.inf, 0]]), sparse.csr_matrix([[0], [0], [np.nan]])):
        with refuses("Expected `features` to be finite numbers, got ... in row 2"):
            read_matrices(wrong, labels=[0, 1, 0])
    with refuses("Expected one row of `inputs` per label (2), got 3"):
        read_matrices(X, labels=[0, 1])


class Evil:
    """Would run code when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("it ran",))


def test_nothing_is_unpickled(tmp_path):
    array = np.array([Evil()], dtype=object)
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", array)
    np.savez(tmp_path / "b.npz", format="csr", shape=(1, 1), data=array, indices=[0], indptr=[0, 1])
    (tmp_path / "c.npy").write_bytes(array.dumps())
    for name in ("a.npy", "a.npz", "b.npz", "c.npy"):
        with refuses(
            "plain numbers, got: ... arrays of Python objects are not read, since that may"
        ):
            read_matrices(tmp_path / name, labels=[0])


def test_files_that_are_refused(tmp_path, saved):
    with refuses("Expected `labels` to be an array or the path of a file", FileNotFoundError):
        read_matrices(X, labels=tmp_path / "none.npy")
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with refuses("Expected one array in two.npz, got ['a', 'b']; pass the right one as `features`"):
        read_matrices(tmp_path / "two.npz", labels=[0])
    for name, content in {
        "a.npy": b"",
        "b.npz": b"PK\x03\x04",
        "c.npy": saved(X, "x.npy").read_bytes()[:-8],
        "d.txt": b"1 2 3",
        "e.npz": saved(X, "x.npz").read_bytes()[:-30],
    }.items():
        (tmp_path / name).write_bytes(content)
        with refuses(f"Expected {name} to be a .npy, .npz or .csv file of plain numbers, got: "):
            read_matrices(tmp_path / name, labels=[0])
    with refuses("file of plain numbers, got: Expected a CSR, CSC or COO matrix, got dia"):
        read_matrices(saved(sparse.dia_matrix(np.eye(2)), "dia.npz"), labels=[0, 1])
    lies = {"format": b"csr", "shape": (2, 2), "data": [1.0, 1.0], "indptr": [0, 1, 2]}
    for indices in ([0, 99], [0, -1]):
        np.savez(tmp_path / "lies.npz", indices=np.array(indices, dtype=np.int32), **lies)
        with refuses("Expected lies.npz to be a .npy, .npz or .csv file of plain numbers, got: "):
            read_matrices(tmp_path / "lies.npz", labels=[0, 1])


def test_csv_matrices_that_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,x\n")
    with refuses("Expected a number in x.csv, line 3, column 2, got 'x'"):
        read_matrices(path, labels=[0, 1])
    path.write_text("1,2\n3\n")
    with refuses("Expected 2 fields in x.csv, line 2, as in its"):
        read_matrices(path, labels=[0, 1])
    for content in ("", "a,b\n"):
        path.write_text(content)
        with refuses("Expected rows of numbers in x.csv, got none"):
            read_matrices(path, labels=[0, 1])


def test_libsvm_files(tmp_path):
    x = sparse.random(20, 9, 0.3, format="csr", random_state=0)
    y = np.array([-1, 1] * 10)
    for zero_based in (True, False):
        dump_svmlight_file(x, y, str(tmp_path / "a.txt"), zero_based=zero_based)
        data = read_libsvm(tmp_path / "a.txt", num_features=9 + zero_based)
    np.testing.assert_allclose(data.inputs.toarray(), x.toarray(), rtol=1e-12)
    assert data.classes == ("-1", "1")
    assert data.labels.tolist() == [0, 1] * 10
    assert read_libsvm(tmp_path / "a.txt", classes=[1, 0, -1]).labels.tolist() == [2, 0] * 10
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.txt").read_bytes()))
    assert len(read_libsvm(packed)) == 20


def test_libsvm_files_with_several_labels(tmp_path):
    path = tmp_path / "b.svm"
    path.write_text("10,9 1:1\n9 2:0.5 # a remark\n 1:3\n")
    data = read_libsvm(path, several=True)
    assert data.classes == ("9", "10")
    assert data.labels.tolist() == [[1, 1], [1, 0], [0, 0]]
    assert data.inputs.toarray().tolist() == [[1, 0], [0, 0.5], [3, 0]]


def test_libsvm_files_that_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    good = "1 1:2\n" * 50
    for content, options, message in (
        (good + "1 x:3\n" + good, {}, "Expected a.txt to be a LIBSVM file, got line 51: inval"),
        (good + "1 3:1\n", {"num_features": 2}, "to be a LIBSVM file, got line 51: n_features"),
        ("1 2:1 1:1\n", {}, "got line 1: Feature indices"),
        ("", {}, "Expected a.txt to hold lines with labels, got none"),
        ("0.5 1:1\n", {}, "Expected `labels of a.txt` to be whole numbers, got 0.5 in row 0"),
        ("1 1:nan\n", {}, "Expected `a.txt` to be finite numbers, got nan in row 0"),
        (good + "2 1:1\n", {"classes": [0, 1]}, "in a.txt, row 51, column 'label', got '2'"),
    ):
        path.write_text(content)
        with refuses(message):
            read_libsvm(path, **options)
    (tmp_path / "a.txt.gz").write_bytes(b"1 1:1\n")
    with refuses("Expected a.txt.gz to be a LIBSVM file, got a broken line"):
        read_libsvm(tmp_path / "a.txt.gz")
    with refuses("Expected `path` to be a LIBSVM file, got '", FileNotFoundError):
        read_libsvm(tmp_path / "none.txt")

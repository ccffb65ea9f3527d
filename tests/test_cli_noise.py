"""`agra noise`: what it reads, what it writes, whole or not at all, and what it refuses."""

import csv
import hashlib
import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import agra
from agra.cli import main


def run(*arguments):
    return CliRunner().invoke(main, ["noise", *map(str, arguments)])


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "train.csv"
    names = ["ham", "spam", "eggs"] * 20
    lines = [f"a{row},{name}" for row, name in enumerate(names)]
    path.write_text("id,label\n" + "\n".join([*lines, "last,"]) + "\n", encoding="utf-8")
    return path


def test_help_fits_a_screen_and_shows_an_example():
    shown = run("--help").output
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.endswith(
        "\n  Example: agra noise train.csv --kind pair --amount 0.2 -o noisy.csv\n"
    )


def test_labels_and_manifest_belong_together(labels, tmp_path):
    out = tmp_path / "noisy.csv"
    result = run(labels, "--kind", "pair", "--amount", 0.2, "--seed", 7, "-o", out, "--json")
    assert result.exit_code == 0
    rows = rows_of(out)
    assert [row["id"] for row in rows] == [*(f"a{n}" for n in range(60)), "last"]
    assert [row["true_label"] for row in rows] == [row["label"] for row in rows_of(labels)]
    wrong = [row for row in rows if row["label"] != row["true_label"]]
    following = {"eggs": "ham", "ham": "spam", "spam": "eggs"}
    assert len(wrong) == 12
    assert all(row["label"] == following[row["true_label"]] for row in wrong)
    assert rows[-1] == {"id": "last", "label": "", "true_label": ""}
    manifest = json.loads((tmp_path / "noisy.csv.json").read_text(encoding="utf-8"))
    assert manifest == json.loads(result.output)
    assert manifest == {
        "agra": agra.__version__,
        "kind": "pair",
        "settings": {"amount": 0.2, "column": "label"},
        "seed": 7,
        "input": {"file": "train.csv", "sha256": sha256(labels)},
        "output": {"file": "noisy.csv", "sha256": sha256(out)},
        "rows": 61,
        "unlabelled": 1,
        "rate": 0.2,
        "classes": ["eggs", "ham", "spam"],
        "matrix": [[16, 4, 0], [0, 16, 4], [4, 0, 16]],
    }


def test_the_seed_decides(labels, tmp_path):
    outs = [tmp_path / f"{n}.csv" for n in range(3)]
    for out, seed in zip(outs, (1, 1, 2), strict=True):
        assert run(labels, "--amount", 0.5, "--seed", seed, "-o", out).exit_code == 0
    first, again, other = (out.read_bytes() for out in outs)
    assert first == again != other


def test_a_short_table(labels, tmp_path):
    result = run(labels, "--amount", 0.3, "-o", tmp_path / "noisy.csv")
    assert "noisy.csv: 18 of 60 labels wrong, 30.0%" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    many = tmp_path / "many.txt"
    many.write_text("\n".join(map(str, range(40))), encoding="utf-8")
    assert "and 28 more classes" in run(many, "--amount", 0, "-o", tmp_path / "m.csv").output


def test_terminals_get_no_commands(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("label\n\x1b[2Jx\n[bold]y\n", encoding="utf-8")
    shown = run(path, "--amount", 1, "-o", tmp_path / "noisy.csv").output
    assert "\x1b" not in shown
    assert r"\x1b[2Jx" in shown
    assert "[bold]y" in shown


def test_cells_are_written_as_they_are(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    names = ["=1+1", "+x", "-y", "@z", 'two\nlines, "quoted"', "Yorùbá"]
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([["text", "label"], *(["t", name] for name in names)])
    assert run(path, "--amount", 0, "-o", out).exit_code == 0
    assert rows_of(out) == [
        {"id": str(row), "label": name, "true_label": name} for row, name in enumerate(names)
    ]
    assert "\r" not in out.read_text(encoding="utf-8")


def test_whole_numbers_as_text_and_arrays(tmp_path):
    text, array = tmp_path / "labels.txt", tmp_path / "labels.npy"
    codes = np.array([10, 9, 2, -100] * 10)
    text.write_text("\n".join(map(str, codes)) + "\n", encoding="utf-8")
    np.save(array, codes)
    outs = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for path, out in zip((text, array), outs, strict=True):
        result = run(path, "--kind", "pair", "--amount", 1, "-o", out, "--json")
        assert json.loads(result.output)["classes"] == ["2", "9", "10"]
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert [row["label"] for row in rows_of(outs[0])[:4]] == ["2", "10", "9", ""]


def test_other_kinds(labels, tmp_path):
    out, matrix = tmp_path / "out.csv", tmp_path / "matrix.csv"
    asked = ["--kind", "sparse", "--amount", 0.25, "--sparsity", 0.5]
    manifest = json.loads(run(labels, *asked, "-o", out, "--json").output)
    assert manifest["rate"] == 0.25
    assert sum(row.count(0) for row in manifest["matrix"]) >= 3
    matrix.write_text("1,0,0\n0.5,0.5,0\n0,0,1\n", encoding="utf-8")
    manifest = json.loads(
        run(labels, "--kind", "matrix", "--matrix", matrix, "-o", out, "--json").output
    )
    assert manifest["matrix"] == [[20, 0, 0], [10, 10, 0], [0, 0, 20]]
    assert manifest["settings"]["matrix"] == {"file": "matrix.csv", "sha256": sha256(matrix)}
    features = np.random.default_rng(0).normal(size=(61, 2))
    np.save(tmp_path / "features.npy", features)
    sparse.save_npz(tmp_path / "features.npz", sparse.csr_matrix(features))
    for name in ("features.npy", "features.npz"):
        given = ["--features", tmp_path / name, "--amount", 0.1]
        result = run(labels, "--kind", "instance", *given, "-o", out, "--json")
        assert json.loads(result.output)["rate"] == 0.1


def test_options_must_fit_the_kind(labels, tmp_path):
    out = tmp_path / "out.csv"
    for arguments, message in (
        ([], "Expected a --amount for noise of kind symmetric, got None"),
        (["--amount", 0.1, "--kind", "sparse"], "Expected a --sparsity for noise of kind sparse"),
        (["--amount", 0.1, "--sparsity", 0.1], "Expected no --sparsity for noise of kind symmet"),
        (["--amount", "nan"], "nan is not a number."),
        (["--amount", 2], "Invalid value for '--amount'"),
        (["--amount", 0.1, "--seed", -1], "Invalid value for '--seed'"),
        (["--amount", 0.1, "--kind", "none"], "Invalid value for '--kind'"),
    ):
        result = run(labels, *arguments, "-o", out)
        assert result.exit_code == 2
        assert message in result.output
    before = labels.read_bytes()
    result = run(labels, "--amount", 0.1, "-o", labels)
    assert result.exit_code == 2
    assert "to be a new file, got one that is read here" in result.output
    assert labels.read_bytes() == before
    assert os.listdir(tmp_path) == ["train.csv"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "Expected one column 'label' in a.csv, got the columns []"),
        ("a.csv", b"text,labels\nx,1\n", "got the columns ['text', 'labels']; did you mean 'labe"),
        ("a.csv", b"label,label\n1,1\n", "Expected one column 'label' in a.csv, got the columns"),
        ("a.csv", b"label\n", "Expected a.csv to hold labels, got no rows."),
        ("a.csv", b"id,label\n1,a\n2\n", "Expected 2 fields in a.csv, line 3, as in its header, "),
        ("a.csv", b"id,label\n1,a\n1,b\n", "Expected every `id` in a.csv once, got '1' again in"),
        ("a.csv", b"label\na\ncaf\xe9\n", "to be written in utf-8, got other bytes in line 3;"),
        (
            "a.csv",
            b"\x89PNG\r\n\x1a\n\0",
            "Expected a.csv to hold text, as its name says, got a PNG",
        ),
        ("a.csv", b'label\n"a\n', "Expected a well-formed record in a.csv, line 2, got one with: "),
        ("a.csv", b"label\na\na\n", "Expected `num_classes` to be at least 2, got 1."),
        ("a.txt", b"0\n1\n\n", "Expected a whole number in line 3 of a.txt, -100 for no label,"),
        ("a.txt", b"0\n1.5\n", "in line 2 of a.txt, -100 for no label, got '1.5'."),
        ("a.npy", b"no array", "Expected a.npy to be a .npy, .npz or .csv file of plain numbers"),
        ("a.png", b"\x89PNG", "Expected a file of labels to end in .csv, .npy or .txt, got a.png"),
    ],
)
def test_bad_labels_write_nothing(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    result = run(path, "--amount", 0.5, "-o", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert "Nothing was written. " in result.output
    assert message in result.output
    assert os.listdir(tmp_path) == [name]


def test_bad_arrays_matrices_and_features(labels, tmp_path):
    out, array = tmp_path / "out.csv", tmp_path / "array.npy"
    for content, message in (
        (np.array([[0, 1]]), "Expected array.npy to hold one whole number per sample, got shape"),
        (np.array([0.5, 1.0]), "Expected `labels` to be whole numbers, got 0.5 in row 0"),
    ):
        np.save(array, content)
        assert message in run(array, "--amount", 0.5, "-o", out).output
    np.save(array, np.array([0, "x"], dtype=object), allow_pickle=True)
    assert "arrays of Python objects are not read" in run(array, "--amount", 0.5, "-o", out).output
    given = ["--kind", "instance", "--amount", 0.5, "--features", array]
    assert "Object arrays cannot be loaded" in run(labels, *given, "-o", out).output
    np.savez(tmp_path / "two.npz", np.eye(3), np.eye(3))
    given[-1] = tmp_path / "two.npz"
    assert (
        "Expected one array in two.npz, got ['arr_0', 'arr_1']"
        in run(labels, *given, "-o", out).output
    )
    matrix = tmp_path / "matrix.csv"
    for content, message in (
        ("1,0\n0,1\n", "Expected --matrix to have one row for each of the 3 classes that occur"),
        ("1,0,0\n0,1,x\n", "Expected a number in matrix.csv, line 2, column 3, got 'x'."),
    ):
        matrix.write_text(content, encoding="utf-8")
        shown = run(labels, "--kind", "matrix", "--matrix", matrix, "-o", out).output
        assert message in shown
    assert not out.exists()


def test_a_failure_while_writing_leaves_what_was_there(labels, tmp_path, monkeypatch):
    out = tmp_path / "noisy.csv"
    assert run(labels, "--amount", 0.1, "-o", out).exit_code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        result = run(labels, "--amount", 0.9, "-o", out)
    assert result.exit_code == 1
    assert "Nothing was written. No space left on device" in result.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    result = run(labels, "--amount", 0.1, "-o", tmp_path / "no" / "noisy.csv")
    assert "noisy.csv to be a file in a folder that exists" in result.output

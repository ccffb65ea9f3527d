"""Readers of published formats, on files made up here: what they give and what they refuse."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agra.data.readers.chexpert import PATHOLOGIES, read_chexpert
from agra.data.readers.cifar import (
    CLASSES,
    HUMAN_LABELS,
    read_cifar10,
    read_human_labels,
    read_path_labels,
)
from agra.data.readers.crowd import read_crowd
from agra.data.readers.json_files import read_json
from agra.data.readers.mulan import read_mulan
from agra.data.readers.npz import read_arrays
from agra.data.readers.wrench import read_wrench
from agra.labels import IGNORE_LABEL
from data_files import write_cifar10


def row(votes, label=0, text="some text"):
    return {"label": label, "weak_labels": votes, "data": {"text": text}}


@pytest.fixture
def wrench(tmp_path):
    """Writes a folder of the format from rows, and gives its path."""

    def write(*rows, split="train", functions=None):
        folder = tmp_path / "tiny"
        folder.mkdir(exist_ok=True)
        text = rows[0]
        if not isinstance(text, str):
            text = json.dumps({str(number): row for number, row in enumerate(rows)})
        (folder / f"{split}.json").write_text(text, encoding="utf-8")
        (folder / "label.json").write_text('{"0": "ham", "1": "spam"}', encoding="utf-8")
        if functions is not None:
            (folder / "lfs.json").write_text(json.dumps(functions), encoding="utf-8")
        return folder

    return write


def test_wrench_rows_by_majority(wrench):
    folder = wrench(row([1, 1, 0]), row([-1, -1, 0], 1, "Ẹ̀kọ́"), row([-1, 1, -1], -1))
    data = read_wrench(folder)
    assert data.name == "tiny"
    assert data.split == "train"
    assert data.labels.tolist() == [1, 0, 1]
    assert data.true_labels.tolist() == [0, 1, IGNORE_LABEL]
    assert data.inputs.tolist() == ["some text", "Ẹ̀kọ́", "some text"]
    assert data.votes.tolist() == [[1, 1, 0], [-1, -1, 0], [-1, 1, -1]]
    assert data.functions == ("0", "1", "2")
    assert data.classes == ("ham", "spam")


def test_wrench_outside_of_training_has_true_labels(wrench):
    data = read_wrench(wrench(row([1, 1]), row([0, 0], 1), split="test"), "test")
    assert data.labels.tolist() == data.true_labels.tolist() == [0, 1]
    assert data.noise_rate == 0


def test_wrench_names(wrench):
    named = [{"name": "my"}, {"name": "link"}]
    folder = wrench(json.dumps({"b": row([1, 1]), "a": row([0, 0])}), functions=named)
    data = read_wrench(folder, classes=["no", "yes"], name="other")
    assert data.functions == ("my", "link")
    assert data.ids.tolist() == ["b", "a"]
    assert (data.name, data.classes) == ("other", ("no", "yes"))
    assert read_wrench(wrench(row([1, 1]), functions=[{"regex": "x"}] * 2)).functions == ("0", "1")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((row([1, 1]), row([1])), r"row 1 of .*train.json to be as many as .* \(2\), got 1"),
        ((row([1, 2]),), r"the vote of function 1 in row 0 of .* in \[0, 1\], or -1 .* got 2"),
        ((row([1, -2]),), "the vote of function 1 in row 0 of .* got -2"),
        ((row([1, 0.5]),), "the vote of function 1 in row 0 of .* got 0.5"),
        ((row([True, 0]),), "the vote of function 0 in row 0 of .* got True"),
        ((row([None, 0]),), "the vote of function 0 in row 0 of .* got None"),
        ((row("11"),), "Expected `weak_labels` in row 0 of .* to be a list, got '11'"),
        ((row([1]), row([1], 2)), r"Expected `label` in row 1 of .* to be in \[0, 1\], or -1"),
        ((row([1], text=3),), "Expected the text in row 0 of .*train.json, got 3"),
        (({"label": 1},), "Expected row 0 of .* to have `label`, `weak_labels` and `data`"),
        ((7,), "Expected row 0 of .* to have `label`, .* got 7"),
        (("{}",), "to be an object with one entry per row, got none"),
        (("[1]",), "to be an object with one entry per row, got none"),
        (('{"0": {\n "label": }}',), "train.json to be JSON, got an error at line 2, column 11"),
    ],
)
def test_wrench_refuses(wrench, rows, message):
    with pytest.raises(ValueError, match=message):
        read_wrench(wrench(*rows))


def test_wrench_files_around_the_rows(wrench, tmp_path):
    folder = wrench(row([1, 1]), functions=[{"name": "my"}])
    with pytest.raises(ValueError, match=r"to list the 2 functions that voted, got others"):
        read_wrench(folder)
    with pytest.raises(FileNotFoundError, match=r"Expected a file .*valid.json, got none"):
        read_wrench(folder, "valid")
    with pytest.raises(ValueError, match=r"Expected `split` to be one of .* did you mean 'valid'"):
        read_wrench(folder, "validation")
    (folder / "label.json").write_text('{"1": "ham"}')
    with pytest.raises(ValueError, match=r"label.json to name the classes from '0' upwards, got"):
        read_wrench(folder)
    with pytest.raises(FileNotFoundError, match=r"label\.json"):
        read_wrench(tmp_path)


def test_json_that_is_none(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(ValueError, match=r"to be UTF-8, got byte 0xe9 at 7"):
        read_json(path)
    path.write_bytes(b"\xef\xbb\xbf[1]")  # a byte order mark
    assert read_json(path) == [1]
    packed = tmp_path / "x.json.gz"
    packed.write_bytes(gzip.compress(b"[1]" * 1000)[:-9])
    with pytest.raises(ValueError, match=r"Expected .*x.json.gz to be whole gzip, got"):
        read_json(packed)


def test_cifar10_images_and_labels(tmp_path):
    pixels, labels = write_cifar10(tmp_path, train=3, test=4)
    for split in ("train", "test"):
        data = read_cifar10(tmp_path, split)
        assert data.inputs.dtype == np.uint8
        np.testing.assert_array_equal(data.inputs, pixels[split])
        np.testing.assert_array_equal(data.labels, labels[split])
        assert (data.split, data.classes, data.noise_rate) == (split, CLASSES, 0)
    assert len(read_cifar10(tmp_path)) == 15


def test_cifar10_refuses(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Expected CIFAR-10's batch .*data_batch_1.bin"):
        read_cifar10(tmp_path)
    path = tmp_path / "test_batch.bin"
    path.write_bytes(bytes(3073 + 100))
    with pytest.raises(ValueError, match=r"to be whole records of 3073 bytes, got 3173"):
        read_cifar10(tmp_path, "test")
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"to be whole records of 3073 bytes, got 0"):
        read_cifar10(tmp_path, "test")
    path.write_bytes(bytes(3073) + bytes([10]) + bytes(3072))
    with pytest.raises(ValueError, match=r"the label of record 1 in .* in \[0, 9\], got 10"):
        read_cifar10(tmp_path, "test")
    with pytest.raises(ValueError, match=r"Expected `split` to be one of"):
        read_cifar10(tmp_path, "valid")


TRUE = np.array([3, 5, 5])
NAMED = {"a/cat/0_cat.png": 4, "a/dog/2_dog.png": 5, "a/dog/1_dog.png": 0}


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_path_labels(tmp_path, ending):
    path = tmp_path / f"labels{ending}"
    content = json.dumps(NAMED).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert read_path_labels(path, TRUE).tolist() == [4, 0, 5]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (NAMED | {"a/dog/1_dog.png": 10}, r"label of a/dog/1_dog.png in .* in \[0, 9\], got 10"),
        (NAMED | {"a/dog/1_dog.png": "0"}, "got '0'"),
        (NAMED | {"a/dog/3_dog.png": 0}, "to name images as in 'cat/7_cat.png', .* below 3, got"),
        (NAMED | {"a/elk/1_elk.png": 0}, "to name images as in"),
        (NAMED | {"a/cat/1_cat.png": 0}, "to belong to the images, got class 3 .* row 1, .* 5"),
        ({}, "to belong to the images, got class -1"),
        ([1], "to belong to the images, got class -1"),
    ],
)
def test_path_labels_refused(tmp_path, entries, message):
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(entries))
    with pytest.raises(ValueError, match=message):
        read_path_labels(path, TRUE)


def test_human_labels(tmp_path):
    path = tmp_path / "human.npz"
    sets = {array: (TRUE + n) % 10 for n, array in enumerate(HUMAN_LABELS.values())}
    np.savez(path, clean_label=TRUE.astype(np.uint8), **sets)
    for n, kind in enumerate(HUMAN_LABELS):
        labels = read_human_labels(path, kind, TRUE)
        assert labels.tolist() == ((TRUE + n) % 10).tolist()
        assert labels.dtype == np.int64
    with pytest.raises(ValueError, match=r"Expected `kind` to be one of .* did you mean 'worse'"):
        read_human_labels(path, "worst", TRUE)
    with pytest.raises(ValueError, match=r"to hold 2 labels, got shape \(3,\)"):
        read_human_labels(path, "aggre", TRUE[:2])
    np.savez(path, clean_label=TRUE, aggre_label=TRUE[:2])
    with pytest.raises(ValueError, match=r"to hold one aggre_label per image, got \(2,\)"):
        read_human_labels(path, "aggre", TRUE)


def write_chexpert(folder, changes=None, rows=40):
    """Two images per patient, values in turn, in both tables."""
    values = np.array(["1.0", "", "0.0", "-1.0"])
    codes = (np.arange(rows)[:, None] + np.arange(12)) % 4
    for name, first in (("train", 1), ("valid", 90000)):
        images = [
            f"CheXpert-v1.0-small/{name}/patient{first + n // 2:05}/study1/view{n % 2 + 1}.jpg"
            for n in range(rows)
        ]
        frame = pd.DataFrame({"Path": images, "Sex": "Female", "No Finding": ""})
        frame[list(PATHOLOGIES)] = values[codes]
        frame["Support Devices"] = "1.0"
        for (row, column), value in (changes or {}).items():
            frame.loc[row, column] = value
        frame.to_csv(folder / f"{name}.csv", index=False)
    return codes


def test_chexpert_labels_and_paths(tmp_path):
    codes = write_chexpert(tmp_path)
    splits = read_chexpert(tmp_path)
    test = splits["test"]
    np.testing.assert_array_equal(test.labels, np.isin(codes, (0, 3)))  # present or uncertain
    assert test.classes == PATHOLOGIES
    assert test.kind == "paths"
    assert test.inputs[0] == tmp_path / "valid/patient90000/study1/view1.jpg"
    assert test.noise_rate == 0
    assert splits["train"].true_labels is None
    assert len(splits["train"]) + len(splits["valid"]) == 40


def test_chexpert_holds_out_whole_patients_by_seed(tmp_path):
    write_chexpert(tmp_path)
    for share, rows in ((0.25, 10), (0.26, 10), (0.5, 20)):
        splits = read_chexpert(tmp_path, seed=1, valid_share=share)
        assert len(splits["valid"]) == rows
        patients = [{path.parts[-3] for path in splits[s].inputs} for s in ("train", "valid")]
        assert not patients[0] & patients[1]
    again, other = (read_chexpert(tmp_path, seed=s, valid_share=0.5) for s in (1, 2))
    assert again["valid"].inputs.tolist() == splits["valid"].inputs.tolist()
    assert other["valid"].inputs.tolist() != splits["valid"].inputs.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({(3, "Edema"): "2"}, "Expected 'Edema' in line 5 of .*train.csv to be 1, 0, .* got '2'"),
        ({(0, "Edema"): "yes"}, "in line 2 of .* to be 1, 0, -1 or blank, got 'yes'"),
        ({(1, "Path"): "x.jpg"}, "Expected `Path` in line 3 of .* to be as in .*, got 'x.jpg'"),
        ({(1, "Path"): "train/patient1/../../../x"}, "Expected a path that stays inside of"),
    ],
)
def test_chexpert_refuses_values(tmp_path, changes, message):
    write_chexpert(tmp_path, changes)
    with pytest.raises(ValueError, match=message):
        read_chexpert(tmp_path)


def test_chexpert_refuses_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Expected CheXpert's table .*train.csv, got no"):
        read_chexpert(tmp_path)
    write_chexpert(tmp_path)
    with pytest.raises(ValueError, match=r"Expected `valid_share` to be in \(0, 1\), got 1"):
        read_chexpert(tmp_path, valid_share=1)
    table = tmp_path / "train.csv"
    table.write_text(table.read_text().replace("Cardiomegaly", "cardiomegaly", 1))
    message = r"Expected a column 'Cardiomegaly' in .*, got none; the nearest is \['cardiomegaly'\]"
    with pytest.raises(ValueError, match=message):
        read_chexpert(tmp_path)
    table.write_text(table.read_text().replace("cardiomegaly", "Cardiomegaly")[:-20])
    with pytest.raises(ValueError, match=r"Expected 16 fields in line 41 of .*train.csv, got"):
        read_chexpert(tmp_path)
    table.write_text("")
    with pytest.raises(ValueError, match=r"Expected a column 'Path' in .* the nearest is \[\]"):
        read_chexpert(tmp_path)
    table.write_bytes(b"\xff")
    with pytest.raises(
        ValueError, match=r"Expected .*train.csv to be CheXpert's CSV table: 'utf-8"
    ):
        read_chexpert(tmp_path)


def mulan(**changes):
    rows = np.arange(6).reshape(3, 2)
    labels = np.array([[1, 0], [1, 1], [0, 0]], dtype=np.int8)
    parts = {"x_train": rows / 2, "y_train": labels, "x_test": rows[:2], "y_test": labels[:2]}
    return parts | {"labels": np.array(["calm", "sad"])} | changes


def test_mulan(tmp_path):
    path = tmp_path / "tiny.npz"
    np.savez(path, **mulan())
    splits = read_mulan(path)
    assert list(splits) == ["train", "test"]
    train = splits["train"]
    assert (train.name, train.several, train.noise_rate) == ("tiny", True, 0)
    assert train.inputs.dtype == np.float32
    assert train.inputs.tolist() == [[0, 0.5], [1, 1.5], [2, 2.5]]
    assert train.label_names().tolist() == [{"calm"}, {"calm", "sad"}, set()]
    assert sparse.issparse(splits["test"].inputs)  # whole numbers: words
    assert splits["test"].inputs.toarray().tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_train": np.full((3, 2), 2)}, "Expected the parts in .*tiny.npz to fit together: .* 2"),
        ({"x_train": np.eye(2)}, "to fit together: Expected one row of `inputs` per label"),
        ({"labels": np.array([{}, []], dtype=object)}, "to hold whole, plain arrays: Object"),
    ],
)
def test_mulan_refuses(tmp_path, changes, message):
    path = tmp_path / "tiny.npz"
    np.savez(path, **mulan(**changes))
    with pytest.raises(ValueError, match=message):
        read_mulan(path)


def test_archives_that_are_none(tmp_path):
    path = tmp_path / "tiny.npz"
    with pytest.raises(FileNotFoundError, match=r"Expected a file .*tiny.npz, got none"):
        read_arrays(path, ["x"])
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"to be a NumPy archive \(.npz\), got another format"):
        read_arrays(path, ["x"])
    np.savez(path, y=np.arange(3))
    with pytest.raises(ValueError, match=r"tiny.npz to hold an array 'x', got \['y'\]"):
        read_arrays(path, ["x"])


def crowd(**changes):
    parts = {"x_train": np.eye(3), "y_train": [0, 1, 1], "x_test": np.eye(3)[:2], "y_test": [1, 0]}
    answers = [[0, 0, -1], [0, 0, 1], [-1, -1, 1]]
    return parts | {"answers": answers, "classes": ["jazz", "rock"]} | changes


def test_crowd(tmp_path):
    path = tmp_path / "tiny.npz"
    np.savez(path, **crowd())
    splits = read_crowd(path, name="music")
    train, test = splits["train"], splits["test"]
    assert train.labels.tolist() == [0, 0, 1]
    assert train.true_labels.tolist() == [0, 1, 1]
    assert train.votes.shape == (3, 3)
    assert (train.name, train.split, test.split) == ("music", "train", "test")
    assert test.votes is None
    assert test.labels.tolist() == test.true_labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": [[0], [2], [0]]}, "tiny.npz to fit together: .* got 2 in row 1, function 0"),
        ({"answers": [[0], [1]]}, r"Expected one row of `votes` per label \(3\), got 2"),
        ({"y_test": [0, 2]}, r"Expected `labels` to be in \[0, 1\]"),
    ],
)
def test_crowd_refuses(tmp_path, changes, message):
    path = tmp_path / "tiny.npz"
    np.savez(path, **crowd(**changes))
    with pytest.raises(ValueError, match=message):
        read_crowd(path)

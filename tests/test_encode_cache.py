"""Encodings that are kept: found again, made anew when damaged, never half."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from agra.data.dataset import NoisyDataset
from agra.encode import TfIdf, cache_folder, encode, load_encoded, save_encoded
from agra.encode.cache import MANIFEST, Cache
from agra.encode.encoder import Encoder, describe
from agra.encode.fingerprint import data_fingerprint
from agra.encode.scratch import Scratch
from agra.files import whole_file


class Lengths(Encoder):
    """Texts to their lengths, in a given unit; counts how often it works."""

    name, reads, packages = "lengths", ("texts", "numbers", "paths"), ("numpy",)

    def __init__(self, unit=1, learns=False):
        self.unit, self.learns, self.calls = unit, learns, 0

    @property
    def uses_labels(self):
        return self.learns

    def settings(self):
        return {"unit": self.unit}

    def rows(self, train, splits, scratch, report):
        self.calls += 1
        return {
            name: np.array([[len(str(row)) * self.unit] for row in data.inputs], np.float32)
            for name, data in splits.items()
        }


def texts(*rows, split="train", **parts):
    return NoisyDataset(
        **{"inputs": rows, "labels": [0] * len(rows), "classes": ("a", "b"), **parts}, split=split
    )


SPLITS = {"train": texts("one", "three"), "test": texts("seven", split="test")}


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_there_is_read(tmp_path):
    encoder = Lengths()
    first, second = (encode(SPLITS, encoder, cache=tmp_path) for _ in range(2))
    assert encoder.calls == 1
    for found in (first, second):
        assert found["train"].inputs.tolist() == [[3], [5]]
        assert isinstance(found["train"].inputs.base, np.memmap)
        assert not found["train"].inputs.flags.writeable
    assert len(entries(tmp_path)) == 1


def test_csr_rows_come_back_as_they_were(tmp_path):
    plain = encode(SPLITS, TfIdf())
    for _ in range(2):
        kept = encode(SPLITS, TfIdf(), cache=tmp_path)
        for name in SPLITS:
            assert sparse.issparse(kept[name].inputs)
            assert kept[name].inputs.dtype == np.float32
            assert (kept[name].inputs != plain[name].inputs).nnz == 0


def test_rows_of_length_zero(tmp_path):
    splits = {**SPLITS, "test": texts(split="test")}
    found = encode(splits, TfIdf(), cache=tmp_path)
    assert found["test"].inputs.shape == (0, found["train"].inputs.shape[1])


def test_nothing_is_kept_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGRA_CACHE", str(tmp_path / "cache"))
    encode(SPLITS, Lengths())
    assert entries(tmp_path) == []


@pytest.mark.parametrize(
    "other",
    [
        {**SPLITS, "train": texts("one", "four")},
        {**SPLITS, "train": texts("on", "ethree")},
        {**SPLITS, "train": texts("one", "three", ids=["x", "y"])},
        {**SPLITS, "valid": SPLITS["test"]},
        {"train": SPLITS["train"]},
    ],
)
def test_other_data_is_another_encoding(tmp_path, other):
    encoder = Lengths()
    encode(SPLITS, encoder, cache=tmp_path)
    encode(other, encoder, cache=tmp_path)
    assert encoder.calls == len(entries(tmp_path)) == 2


def test_other_settings_and_versions_are_another_encoding(tmp_path, monkeypatch):
    encode(SPLITS, Lengths(1), cache=tmp_path)
    encode(SPLITS, Lengths(2), cache=tmp_path)
    assert len(entries(tmp_path)) == 2
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99")
    encode(SPLITS, Lengths(1), cache=tmp_path)
    assert len(entries(tmp_path)) == 3


def test_labels_matter_only_where_they_are_learned_from():
    for learns in (False, True):
        same = [
            describe(Lengths(learns=learns), data, {"train": data, "test": SPLITS["test"]})
            for data in (texts("one", "three", labels=[0, 1]), texts("one", "three", labels=[1, 1]))
        ]
        assert (same[0] == same[1]) == (not learns)


def test_files_are_told_apart_by_what_they_hold(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_bytes(b"same")
    data = NoisyDataset(inputs=paths, labels=[0, 1], classes=("a", "b"))
    before = data_fingerprint(data)
    assert data_fingerprint(data) == before
    paths[1].write_bytes(b"more")
    assert data_fingerprint(data) != before
    paths[1].unlink()
    with pytest.raises(
        FileNotFoundError, match=r"Expected a readable file in row 1 of the train split, got .*b'"
    ):
        data_fingerprint(data)


def test_arrays_are_told_apart_by_type_and_shape():
    found = {
        data_fingerprint(NoisyDataset(inputs=array, labels=[0] * len(array), classes=("a",)))[
            "inputs"
        ]
        for array in (np.zeros((4, 2)), np.zeros((2, 4)), np.zeros((2, 4), np.int64))
    }
    assert len(found) == 3
    big = np.arange(5000).reshape(2500, 2)
    once, again = (
        data_fingerprint(NoisyDataset(inputs=array, labels=[0] * 2500, classes=("a",)))["inputs"]
        for array in (big, np.asfortranarray(big))
    )
    assert once == again


def damage_cut(entry):
    path = entry / "train.npy"
    path.write_bytes(path.read_bytes()[:-1])


def damage_flip(entry):
    path = entry / "train.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")


def damage_missing(entry):
    (entry / "test.npy").unlink()


def damage_manifest(entry):
    (entry / MANIFEST).write_text("{")


def damage_foreign(entry):
    (entry / MANIFEST).write_text("[]")


def damage_no_splits(entry):
    (entry / MANIFEST).write_text('{"files": {}, "splits": {}}')


def damage_no_manifest(entry):
    (entry / MANIFEST).unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damage_cut,
        damage_flip,
        damage_missing,
        damage_manifest,
        damage_foreign,
        damage_no_manifest,
        damage_no_splits,
    ],
)
def test_a_damaged_encoding_is_made_anew(tmp_path, damage):
    encoder = Lengths()
    encode(SPLITS, encoder, cache=tmp_path)
    (name,) = entries(tmp_path)
    damage(tmp_path / name)
    for _ in range(2):
        assert encode(SPLITS, encoder, cache=tmp_path)["train"].inputs.tolist() == [[3], [5]]
    assert encoder.calls == 2
    assert entries(tmp_path) == [name]


def test_the_manifest_says_what_the_rows_are(tmp_path):
    encode(SPLITS, Lengths(7), cache=tmp_path)
    manifest = json.loads((tmp_path / entries(tmp_path)[0] / MANIFEST).read_text())
    assert manifest["of"]["encoder"] == "lengths"
    assert manifest["of"]["settings"] == {"unit": 7}
    assert manifest["of"]["versions"] == {"numpy": np.__version__}
    assert manifest["splits"]["test"] == {"layout": "dense", "shape": [1, 1], "dtype": "float32"}
    assert set(manifest["files"]) == {"train.npy", "test.npy"}
    assert manifest["completed"]


def test_an_error_leaves_nothing_half_done(tmp_path):
    cache = Cache(tmp_path)
    with pytest.raises(ValueError, match="Object arrays"):
        cache.save({}, {"train": np.array([None])})
    assert entries(tmp_path) == []
    assert cache.load({}) is None


def test_the_cache_is_where_it_is_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setenv("AGRA_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("AGRA_CACHE", "~/x")
    assert cache_folder() == Path.home() / "x"
    monkeypatch.delenv("AGRA_CACHE")
    assert cache_folder().name == "agra"


def test_scratch_keeps_whole_parts_and_notices_damage(tmp_path):
    scratch, calls = Scratch(tmp_path / "work"), []

    def compute():
        calls.append(1)
        return np.arange(3)

    for _ in range(2):
        assert scratch.array("part", compute).tolist() == [0, 1, 2]
    assert len(calls) == 1
    path = tmp_path / "work" / "part"
    for content in (b"", path.read_bytes()[:-1], path.read_bytes()[:-1] + b"!"):
        path.write_bytes(content)
        assert scratch.read("part") is None
        assert scratch.array("part", compute).tolist() == [0, 1, 2]
    assert len(calls) == 4
    scratch.clear()
    assert not (tmp_path / "work").exists()
    scratch.clear()


def test_a_draft_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def half():
        with whole_file(path) as draft:
            draft.write_text("new")
            raise RuntimeError("half")

    with pytest.raises(RuntimeError, match="half"):
        half()
    assert path.read_text() == "old"
    assert entries(tmp_path) == ["file"]


def test_a_killed_run_goes_on(tmp_path):
    script = f"""
import numpy as np
from test_encode_cache import SPLITS, Lengths
from agra.encode import encode

class Slow(Lengths):
    def rows(self, train, splits, scratch, report):
        scratch.array("first", lambda: np.ones(2))
        print("kept", flush=True)
        time.sleep(60)

encode(SPLITS, Slow(), cache={str(tmp_path)!r})
"""
    tests = Path(__file__).parent
    paths = os.pathsep.join([str(tests), str(tests.parent / "src")])
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout.readline() == b"kept\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert [name.partition(".")[2] for name in entries(tmp_path)] == ["unfinished"]

    class Resumed(Lengths):
        def rows(self, train, splits, scratch, report):
            assert scratch.array("first", lambda: 1 / 0).tolist() == [1, 1]
            return super().rows(train, splits, scratch, report)

    encode(SPLITS, Resumed(), cache=tmp_path)
    (name,) = entries(tmp_path)
    assert "." not in name


def test_encoded_splits_in_a_file(tmp_path):
    several = NoisyDataset(
        inputs=np.eye(2, dtype=np.float16), labels=[[0, 1], [1, np.nan]], classes=("a", "b")
    )
    plain = {
        name: data.replace(
            true_labels=[1] * len(data), ids=[f"{name}{n}" for n in range(len(data))]
        )
        for name, data in SPLITS.items()
    }
    for splits in (encode(plain, TfIdf()), {"train": several}):
        path = tmp_path / "rows.npz"
        save_encoded(splits, path, about={"encoder": "any"})
        found = load_encoded(path)
        assert list(found) == list(splits)
        for name, data in splits.items():
            assert data.inputs.dtype == found[name].inputs.dtype
            difference = data.inputs != found[name].inputs
            assert not (difference.nnz if sparse.issparse(difference) else difference.any())
            np.testing.assert_array_equal(data.labels, found[name].labels)
            np.testing.assert_array_equal(data.ids, found[name].ids)
            assert (data.true_labels is None) == (found[name].true_labels is None)
            assert (data.classes, data.split) == (found[name].classes, found[name].split)
        manifest = json.loads((tmp_path / "rows.npz.json").read_text())
        assert manifest["encoder"] == "any"
        assert manifest["splits"]["train"]["shape"] == list(splits["train"].inputs.shape)
    assert entries(tmp_path) == ["rows.npz", "rows.npz.json"]


def test_what_cannot_be_written_or_read(tmp_path):
    numbers = encode(SPLITS, Lengths())
    with pytest.raises(ValueError, match=r"Expected `path` to end in .npz, got 'rows.csv'"):
        save_encoded(numbers, "rows.csv")
    other = numbers["test"].replace(classes=("c", "d"))
    for splits, count in (({**numbers, "test": other}, 2), ({}, 0)):
        with pytest.raises(
            ValueError, match=f"Expected `splits` to have the same classes, got {count} different"
        ):
            save_encoded(splits, tmp_path / "rows.npz")
    with pytest.raises(TypeError, match="Expected numbers as inputs, got texts"):
        save_encoded(SPLITS, tmp_path / "rows.npz")
    assert entries(tmp_path) == []
    save_encoded(numbers, tmp_path / "rows.npz")
    content = (tmp_path / "rows.npz").read_bytes()
    for damaged in (content[:-1], content[:100] + b"!" + content[101:]):
        (tmp_path / "rows.npz").write_bytes(damaged)
        with pytest.raises(ValueError, match="to be as its manifest says, got another or a dam"):
            load_encoded(tmp_path / "rows.npz")
    (tmp_path / "rows.npz").write_bytes(content)
    (tmp_path / "rows.npz.json").write_text("{}")
    for damaged in ("{", "[]"):
        (tmp_path / "rows.npz.json").write_text(damaged)
        with pytest.raises(ValueError, match="to be as its manifest says"):
            load_encoded(tmp_path / "rows.npz")
    with pytest.raises(
        FileNotFoundError, match=r"Expected encoded splits in '.*', got no such file"
    ):
        load_encoded(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="to be as its manifest says"):
        load_encoded(tmp_path / "rows.npz")

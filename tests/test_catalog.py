"""Data sets by name: what the catalog says, what is loaded, and how files get there."""

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pytest

import agra
from agra.data import download as downloads
from agra.data.catalog import CATALOG, Archive, Counts, load_dataset
from agra.data.catalog.check import discrepancies, verify
from agra.data.home import inside
from data_files import serve, write_cifar10

SPLITS = ("train", "valid", "test")
NAMES = (
    *("digits", "youtube", "sms", "trec", "yoruba", "hausa", "cifar10", "chexpert", "music-genre"),
    *("yeast", "scene", "emotions", "tmc2007"),
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nothing here may ask a public server."""
    original = downloads._open

    def only_loopback(url, start):
        assert urlparse(url).hostname == "127.0.0.1", url
        return original(url, start)

    monkeypatch.setattr(downloads, "_open", only_loopback)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_the_names():
    assert tuple(CATALOG) == NAMES
    assert agra.load_dataset is load_dataset


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_says_where_it_comes_from(name):
    entry = CATALOG[name]
    assert entry.name == name
    assert entry.title
    assert entry.citation
    assert entry.licence
    assert len(entry.noise) <= 20  # a column of `agra data list`
    urls = [entry.origin, *(file.origin for file in entry.files)]
    assert all(urlparse(url).scheme == "https" for url in urls)
    assert next(iter(entry.counts.rows)) in {"train", "train + valid"}
    if entry.counts.given and entry.noise != "none":  # those without have several labels
        assert sum(entry.counts.given) == entry.counts.rows["train"]
    for file in entry.files:
        inside(Path("home"), file.path)  # raises if it leaves the home
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256 or "0" * 64)
        assert (file.size is None) == (file.sha256 is None) == (name == "chexpert")
        assert file.how or file.instead


def test_digits_by_seed():
    first, again, other = (load_dataset("digits", seed=seed) for seed in (0, 0, 1))
    assert list(first) == ["train", "valid", "test"]
    for split, data in first.items():
        np.testing.assert_array_equal(data.inputs, again[split].inputs)
        np.testing.assert_array_equal(data.labels, again[split].labels)
        assert data.split == split
        assert 0 <= data.inputs.min() < data.inputs.max() == 1
    assert first["train"].labels.tolist() != other["train"].labels.tolist()
    rows = np.concatenate([data.ids for data in first.values()])
    assert sorted(rows) == list(range(1797))
    shares = [np.bincount(data.true_labels) / len(data) for data in first.values()]
    assert np.ptp(shares, axis=0).max() < 0.01


@pytest.mark.parametrize("rate", [0, 0.1, 1])
def test_digits_with_other_noise(rate):
    splits = load_dataset("digits", noise=rate)
    assert splits["train"].wrong.sum() == round(rate * 1257)
    assert splits["valid"].noise_rate == splits["test"].noise_rate == 0


def test_nothing_is_needed_for_digits(monkeypatch):
    monkeypatch.setitem(os.environ, "AGRA_DATA_HOME", "/nowhere")
    assert len(load_dataset("digits", split="valid")) == 270


def test_what_cannot_be_asked_for(tmp_path):
    with pytest.raises(ValueError, match=r"Expected `name` to be .*; did you mean 'youtube'\?"):
        load_dataset("youtub")
    with pytest.raises(ValueError, match=r"Expected `split` to be one of .*'test', 'train'"):
        load_dataset("yeast", split="valid")
    with pytest.raises(ValueError, match=r"Expected `seed` to be in \[0, 2\*\*32 - 1\], got -1"):
        load_dataset("digits", seed=-1)
    for noise in (1.5, "aggre", float("nan")):
        with pytest.raises(ValueError, match=r"of 'digits' to be a rate in \[0, 1\], got"):
            load_dataset("digits", noise=noise)
    for name in ("sms", "music-genre", "yeast", "chexpert"):
        with pytest.raises(ValueError, match=f"Expected `noise` to be None for '{name}', whose"):
            load_dataset(name, noise=0.2, home=tmp_path)
    with pytest.raises(ValueError, match=r"Expected `noise` to be one of .* did you mean 'aggre'"):
        load_dataset("cifar10", noise="agree", home=tmp_path)


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset(name, home=tmp_path, download=False)
    first = CATALOG[name].files[0]
    assert f"Expected the file {tmp_path / first.path} of '{name}' to be there" in str(caught.value)
    assert "got none; put it there: " in str(caught.value)
    assert first.origin in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_the_original_of_a_file_serves_instead(tmp_path):
    folder = tmp_path / "cifar10"
    (folder / "cifar-10-batches-bin").mkdir(parents=True)
    _, labels = write_cifar10(folder / "cifar-10-batches-bin", train=4, test=20)
    (folder / Path(CATALOG["cifar10"].files[6].path).stem).write_text(noise_of(labels["train"]))
    assert load_dataset("cifar10", home=tmp_path)["train"].noise_rate == 1


def noise_of(labels):
    """Every image of the next class, as the published file says it."""
    names = agra.data.readers.cifar.CLASSES
    given = {f"x/{n}_{names[label]}.png": int(label + 1) % 10 for n, label in enumerate(labels)}
    return json.dumps(given)


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A tiny CIFAR-10 on loopback, as the real one is published; gives the server."""
    folder = tmp_path / "published" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    _, labels = write_cifar10(folder, train=4, test=20)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder, folder.name)
    noise = noise_of(labels["train"]).encode()
    files = {"cifar.tar.gz": packed.getvalue(), "noise.json": noise}
    entry = CATALOG["cifar10"]
    with serve(files) as server:
        remote = Archive(
            path="cifar10/cifar.tar.gz",
            url=f"{server.url}/cifar.tar.gz",
            size=len(files["cifar.tar.gz"]),
            sha256=hashlib.sha256(files["cifar.tar.gz"]).hexdigest(),
        )
        batches = [replace(f, archive=(remote, f.archive[1])) for f in entry.files[:6]]
        confident = replace(
            entry.files[6],
            instead=replace(
                entry.files[6].instead,
                url=f"{server.url}/noise.json",
                size=len(noise),
                sha256=hashlib.sha256(noise).hexdigest(),
            ),
        )
        changed = replace(entry, files=(*batches, confident, entry.files[7]))
        monkeypatch.setitem(CATALOG, "cifar10", changed)
        yield server


def test_what_is_published_is_downloaded_once(published, tmp_path):
    home, seen = tmp_path / "home", []
    splits = load_dataset("cifar10", home=home, progress=lambda *report: seen.append(report[0]))
    assert {name: len(data) for name, data in splits.items()} == {
        "train": 20,
        "valid": 10,
        "test": 10,
    }
    assert splits["train"].noise_rate == 1
    assert np.bincount(splits["valid"].labels).tolist() == [1] * 10
    assert not set(splits["valid"].ids) & set(splits["test"].ids)
    assert set(seen) == {"cifar.tar.gz", CATALOG["cifar10"].files[6].instead.path.split("/")[1]}
    assert sorted(os.listdir(home / "cifar10"))[0] == "cifar-10-batches-bin"
    assert not [path for path in home.rglob("*") if path.suffix in (".part", ".gz")]
    assert len(published.requests) == 2
    again = load_dataset("cifar10", split="train", home=home, download=False)
    assert again.labels.tolist() == splits["train"].labels.tolist()
    assert load_dataset("cifar10", split="train", home=home, noise="clean").noise_rate == 0
    assert len(published.requests) == 2


def test_only_missing_members_are_unpacked(published, tmp_path):
    own = tmp_path / "home" / "cifar10" / "cifar-10-batches-bin" / "data_batch_1.bin"
    own.parent.mkdir(parents=True)
    own.write_bytes(bytes(3073 * 4))
    splits = load_dataset("cifar10", home=tmp_path / "home", noise="clean")
    assert splits["train"].labels[:5].tolist() == [0, 0, 0, 0, 4]


def test_an_archive_of_another_content_leaves_nothing(published, tmp_path, monkeypatch):
    entry = CATALOG["cifar10"]
    wrong = replace(entry.files[0].archive[0], sha256="0" * 64)
    files = tuple(f if f.archive is None else replace(f, archive=(wrong, "x")) for f in entry.files)
    monkeypatch.setitem(CATALOG, "cifar10", replace(entry, files=files))
    with pytest.raises(ValueError, match=r"to have the SHA-256 0000.*, got another content"):
        load_dataset("cifar10", home=tmp_path / "home")
    assert os.listdir(tmp_path / "home" / "cifar10") == []


def test_people_labels_are_not_published_as_plain_arrays(published, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cifar10n_human_labels.npz .*numpy.savez from"):
        load_dataset("cifar10", home=tmp_path / "home", noise="worse")


def test_counts_that_differ_are_told_apart():
    splits = load_dataset("digits", noise=0)
    entry = CATALOG["digits"]
    assert discrepancies(entry.counts, splits) == ["Expected 377 wrong labels in train, got 0."]
    counts = Counts(rows={"train + test": 1, "valid": 270}, classes=9, given=(1,) * 10)
    rows, classes, given = discrepancies(counts, splits)
    assert rows == "Expected 1 rows in train + test, got 1527."
    assert classes == "Expected 9 classes, got 10."
    assert given.startswith("Expected [1, 1, 1, 1, 1, 1, 1, 1, 1, 1] labels by class in train, got")


def copy_set(name, home):
    """The files of a set in the data home of the environment, copied."""
    source = os.environ.get("AGRA_DATA_HOME")
    if source is None or verify(name).state != "ok":
        pytest.skip(f"needs the files of {name}: point AGRA_DATA_HOME to a folder that holds them")
    for file in CATALOG[name].files:
        target = home / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((Path(source) / file.path).read_bytes())


@pytest.mark.parametrize("name", NAMES[1:])
def test_real_files_are_what_the_catalog_says(name):
    if "AGRA_DATA_HOME" not in os.environ:
        pytest.skip("needs a data home: point AGRA_DATA_HOME to it")
    verdict = verify(name)
    if verdict.state in {"not there", "incomplete"}:
        pytest.skip(f"needs the files of {name} in AGRA_DATA_HOME: {verdict.problems[0]}")
    assert verdict.problems == ()
    assert verdict.state == "ok"
    assert verdict.rows == sum(CATALOG[name].counts.rows.values())


@pytest.mark.parametrize(
    ("name", "percent"),
    [("youtube", 18.8), ("sms", 31.9), ("trec", 48.2), ("yoruba", 42.3), ("hausa", 50.6)],
)
def test_noise_rates_are_the_papers(name, percent):
    counts = CATALOG[name].counts
    assert round(100 * counts.wrong / counts.rows["train"], 1) == percent


def test_damage_is_noticed(tmp_path):
    copy_set("emotions", tmp_path)
    path = tmp_path / CATALOG["emotions"].files[0].path
    assert verify("emotions", tmp_path).state == "ok"
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    (problem,) = verify("emotions", tmp_path).problems
    assert "to have the SHA-256 3c0ef7da" in problem
    path.write_bytes(content[:-1])
    assert "to have 151855 bytes, got 151854." in verify("emotions", tmp_path).problems[0]
    path.unlink()
    verdict = verify("emotions", tmp_path)
    assert (verdict.state, verdict.files) == ("not there", 0)
    assert verdict.problems == (f"{path} is not there.",)


def test_a_set_of_which_some_files_are_missing(tmp_path):
    copy_set("hausa", tmp_path)
    (tmp_path / "text/hausa/lfs.json").unlink()  # names only
    assert verify("hausa", tmp_path).state == "ok"
    (tmp_path / "text/hausa/test.json").unlink()
    verdict = verify("hausa", tmp_path)
    assert (verdict.state, verdict.files, verdict.rows) == ("incomplete", 3, None)


def test_files_of_other_content_that_cannot_be_hashed(tmp_path):
    folder = tmp_path / "chexpert"
    folder.mkdir()
    for table in ("train.csv", "valid.csv"):
        (folder / table).write_bytes(gzip.compress(b"not a table"))
    verdict = verify("chexpert", tmp_path)
    assert verdict.state == "wrong"
    assert "to be CheXpert's CSV table" in verdict.problems[0]


def test_the_page_lists_the_catalog():
    rows = []
    for entry in CATALOG.values():
        counts = entry.counts
        sizes = [f"{counts.rows[s]:,}" if s in counts.rows else "-" for s in SPLITS]
        if "train + valid" in counts.rows:
            sizes = [f"{counts.rows['train + valid']:,} in both", str(counts.rows["test"])]
        share = None if counts.wrong is None else counts.wrong / next(iter(counts.rows.values()))
        wrong = "unknown" if share is None else f"{share:.1%}"
        cells = [" / ".join(sizes), str(counts.classes), entry.noise, wrong, entry.licence]
        rows.append(f"| `{entry.name}` | " + " | ".join(cells) + " |")
    page = Path(__file__).parents[1] / "docs" / "datasets.md"
    assert "\n".join(rows) in page.read_text(encoding="utf-8")

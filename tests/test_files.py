"""Whole or not at all: what an error, or a process that died, leaves behind."""

from pathlib import Path

import pytest

from agra.files import whole_file, whole_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def stopped(writing, begin):
    with writing as draft:
        begin(draft)
        raise KeyboardInterrupt


def test_a_file_takes_its_place_at_the_end(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")
    with whole_file(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["note.txt"]


def test_an_error_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        stopped(whole_file(path), lambda draft: draft.write_text("half"))
    assert path.read_text() == "old"
    assert names(tmp_path) == ["note.txt"]


def test_a_folder_takes_its_place_at_the_end(tmp_path):
    path = tmp_path / "deep" / "model"
    for content in ("old", "new"):
        with whole_folder(path) as draft:
            assert names(draft) == []
            (draft / content).touch()
        assert names(path) == [content]
    assert names(tmp_path / "deep") == ["model"]


def test_an_error_leaves_the_folder_as_it_was(tmp_path):
    path = tmp_path / "model"
    with whole_folder(path) as draft:
        (draft / "old").touch()
    with pytest.raises(KeyboardInterrupt):
        stopped(whole_folder(path), lambda draft: (draft / "half").touch())
    assert names(path) == ["old"]
    with pytest.raises(FileNotFoundError), whole_folder(path) as draft:
        draft.rmdir()  # so that the exchange fails after the old one was moved
    assert names(path) == ["old"]
    assert names(tmp_path) == ["model"]


def test_a_device_or_a_folder_is_not_replaced(tmp_path):
    for path in (Path("/dev/null"), tmp_path):
        with pytest.raises(OSError, match="to be a file to write, got a folder or a device"):
            whole_file(path).__enter__()


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with whole_file(tmp_path / "link.txt") as draft:
        draft.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"

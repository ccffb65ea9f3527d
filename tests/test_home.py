"""The data home, and what gets into it: downloads from a server on loopback, archives."""

import hashlib
import io
import os
import shutil
import socket
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agra.data.archives import unpack
from agra.data.download import download
from agra.data.home import data_home, inside
from data_files import serve

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serve({"file": CONTENT}) as running:
        yield running


def test_which_home_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("AGRA_DATA_HOME", str(tmp_path / "environment"))
    assert data_home(tmp_path / "given") == tmp_path / "given"
    assert data_home() == tmp_path / "environment"
    monkeypatch.setenv("AGRA_DATA_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "agra" in data_home().parts
    assert data_home("~/sets") == Path.home() / "sets"


def test_without_platformdirs_a_home_must_be_named(monkeypatch):
    monkeypatch.delenv("AGRA_DATA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(ImportError, match=r"Expected platformdirs .* pip install 'agra\[data\]'"):
        data_home()


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a/../../x", "a\\..\\..\\x", "C:\\x", "C:x", "\\\\server\\x", "a/.."]
)
def test_paths_that_climb_out_are_refused(path):
    with pytest.raises(ValueError, match=r"Expected a path that stays inside of home, got"):
        inside(Path("home"), path)


@given(st.text(alphabet="a./\\:", max_size=12))
def test_no_path_leaves_the_home(path):
    home = Path("/some/home")
    try:
        found = inside(home, path)
    except ValueError:
        return
    assert Path(os.path.normpath(found)).is_relative_to(home)


def test_a_download_is_whole_and_reported(server, tmp_path, capfd):
    seen = []
    target = tmp_path / "new" / "file.bin"
    download(
        f"{server.url}/file",
        target,
        sha256=SHA256,
        size=len(CONTENT),
        progress=lambda *report: seen.append(report),
    )
    assert target.read_bytes() == CONTENT
    assert os.listdir(target.parent) == ["file.bin"]
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert capfd.readouterr() == ("", "")


def test_a_cut_download_goes_on_where_it_was(server, tmp_path):
    target = tmp_path / "file.bin"
    for _ in range(2):
        with pytest.raises(
            ConnectionError,
            match=r"got a connection that broke \(the server closed it after \d+ of 512000",
        ):
            download(f"{server.url}/cut/file", target, sha256=SHA256)
        assert os.listdir(tmp_path) == ["file.bin.part"]
    download(f"{server.url}/file", target, sha256=SHA256)
    assert target.read_bytes() == CONTENT
    third = len(CONTENT) // 3
    assert [start for _, start in server.requests] == [0, third, 2 * third]


@pytest.mark.parametrize(
    ("path", "starts"), [("/no-ranges/file", [1000]), ("/file", [2 * len(CONTENT), 0])]
)
def test_what_cannot_be_continued_starts_anew(server, tmp_path, path, starts):
    part = tmp_path / "file.bin.part"
    part.write_bytes(CONTENT[: starts[0]] + bytes(max(0, starts[0] - len(CONTENT))))
    download(server.url + path, tmp_path / "file.bin", sha256=SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert [start for _, start in server.requests] == starts


def test_another_content_is_thrown_away(server, tmp_path):
    with pytest.raises(ValueError, match=r"Expected http://.* to have the SHA-256 0000"):
        download(f"{server.url}/file", tmp_path / "file.bin", sha256="0" * 64)
    assert os.listdir(tmp_path) == []


def test_what_the_server_does_not_have(server, tmp_path):
    message = r"to be there, got HTTP 404 .*; put the file at .*file.bin yourself"
    with pytest.raises(FileNotFoundError, match=message):
        download(f"{server.url}/missing", tmp_path / "file.bin", sha256=SHA256)
    assert os.listdir(tmp_path) == []


def test_no_server(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    message = "Expected a network to download http.*refused; put the file at .*file.bin yourself"
    with pytest.raises(ConnectionError, match=message):
        download(f"http://127.0.0.1:{port}/file", tmp_path / "file.bin", sha256=SHA256)
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_too_small(server, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"Expected 512,000 bytes of free space for .*, got 1,000"):
        download(f"{server.url}/file", tmp_path / "f", sha256=SHA256, size=len(CONTENT))
    assert server.requests == []


def test_a_disk_that_fills_up(server, tmp_path):
    (tmp_path / "file.bin.part").symlink_to("/dev/full")  # accepts no byte
    with pytest.raises(OSError, match=r"Expected room for .*file.bin, got a full disk; free some"):
        download(f"{server.url}/file", tmp_path / "file.bin", sha256=SHA256)
    assert not (tmp_path / "file.bin").exists()


def test_a_file_that_cannot_be_written_says_so_itself(server, tmp_path):
    (tmp_path / "file.bin.part").mkdir()
    with pytest.raises(IsADirectoryError):
        download(f"{server.url}/file", tmp_path / "file.bin", sha256=SHA256)


def test_without_pooch(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"Expected the package 'pooch' to be installed"):
        download("data:,x", tmp_path / "x", sha256=SHA256)


def make_archive(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                information = tarfile.TarInfo(member)
                information.size = len(CONTENT)
                archive.addfile(information, io.BytesIO(CONTENT))
    return path


def entry(name, kind, target=""):
    information = tarfile.TarInfo(name)
    information.type, information.linkname = kind, target
    return information


def test_an_archive_gives_what_is_asked_for(tmp_path):
    root = entry(".", tarfile.DIRTYPE)
    path = make_archive(tmp_path / "a.tar.gz", root, entry("in", tarfile.DIRTYPE), "in/a", "in/b")
    unpack(path, {"in/a": tmp_path / "deep" / "x", "in/b": tmp_path / "y"})
    assert (tmp_path / "deep" / "x").read_bytes() == (tmp_path / "y").read_bytes() == CONTENT
    assert sorted(os.listdir(tmp_path)) == ["a.tar.gz", "deep", "y"]
    with pytest.raises(ValueError, match=r"Expected .*a.tar.gz to hold the file 'in', got none"):
        unpack(path, {"in": tmp_path / "z"})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("../evil", "stays inside of .*, got '../evil'"),
        ("/evil", "stays inside of .*, got '/evil'"),
        ("in/../../evil", "stays inside of"),
        (entry("in/link", tarfile.SYMTYPE, "/etc/passwd"), "plain files and folders only, got 'in"),
        (entry("in/link", tarfile.LNKTYPE, "in/a"), "a link or a device; do not trust it"),
        (entry("in/device", tarfile.CHRTYPE), "to hold plain files and folders only"),
    ],
)
def test_an_archive_with_one_bad_member_is_refused_whole(tmp_path, bad, message):
    path = make_archive(tmp_path / "a.tar.gz", "in/a", bad)
    with pytest.raises(ValueError, match=message):
        unpack(path, {"in/a": tmp_path / "x"})
    assert os.listdir(tmp_path) == ["a.tar.gz"]


@pytest.mark.parametrize("keep", [0, 1, 10, 200, 1000])
def test_a_cut_archive_is_refused(tmp_path, keep):
    path = make_archive(tmp_path / "a.tar.gz", "in/a", "in/b")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"to be a whole tar archive, got .*download it again"):
        unpack(path, {"in/a": tmp_path / "x"})
    assert os.listdir(tmp_path) == ["a.tar.gz"]

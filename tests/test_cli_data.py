"""`agra data`, through its real entry point."""

import importlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from agra.cli import main
from agra.data.catalog import CATALOG


def run(*arguments, home="/nowhere"):
    return CliRunner().invoke(main, ["data", *arguments], env={"AGRA_DATA_HOME": str(home)})


@pytest.fixture
def home(tmp_path):
    """A data home with a file that should be another one."""
    path = tmp_path / CATALOG["emotions"].files[0].path
    path.parent.mkdir(parents=True)
    np.savez(path, x=np.arange(3))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ([], "list"),
        (["list"], "list --json"),
        (["get"], "get cifar10"),
        (["path"], "path trec"),
        (["verify"], "verify --all"),
    ],
)
def test_help_fits_a_screen_and_shows_an_example(command, example):
    shown = run(*command, "--help").output
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.endswith(f"\n  Example: agra data {example}\n")
    assert not any(line.endswith("...") for line in shown.splitlines()[1:])  # nothing is cut


def test_list_shows_every_set_on_a_line_of_80_columns():
    result = run("list")
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert max(map(len, lines)) <= 80
    assert len(lines) == 4 + len(CATALOG)
    (sms,) = [line for line in lines if " sms " in line]
    assert [part.strip() for part in sms.strip("│").split("│")] == [
        "sms",
        "4,571",
        "2",
        "vote of 73 functions",
        "31.9%",
        "0 of 4",
    ]


def test_list_as_json():
    rows = json.loads(run("list", "--json").output)
    assert [row["name"] for row in rows] == list(CATALOG)
    youtube = rows[1]
    assert youtube["rows"] == {"train": 1586, "valid": 120, "test": 250}
    assert youtube["noise_rate"] == pytest.approx(0.1879, abs=5e-5)
    assert youtube["origin"] == "https://github.com/JieyuZ2/wrench"
    assert all(row["licence"] and row["citation"] for row in rows)


def test_path(tmp_path):
    assert run("path", home=tmp_path).output == f"{tmp_path}\n"
    assert run("path", "--data-home", str(tmp_path), home="/other").output == f"{tmp_path}\n"
    listed = run("path", "yeast", home=tmp_path).output
    assert listed == f"{tmp_path / 'multilabel/mulan_yeast.npz'}\n"
    assert run("path", "digits").output == ""


def test_get_what_is_there_and_what_cannot_be_had(home):
    assert run("get", "digits").output == "digits: built in.\n"
    assert run("get", "emotions", home=home).output == "emotions: all files are there.\n"
    result = run("get", "yeast", home=home)
    assert result.exit_code == 1
    assert "Error: Expected the file" in result.output
    assert "https://mulan.sourceforge.net/datasets-mlc.html" in result.output
    assert "Expected `name` to be one of" in run("get", "digits", "imagenet").output
    assert "digits:" not in run("get", "digits", "imagenet").output


@pytest.mark.parametrize("watched", [True, False])
def test_a_bar_only_where_somebody_sees_it(monkeypatch, watched):
    shown = io.StringIO()
    shown.isatty = lambda: watched
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with importlib.import_module("agra.cli.data")._progress() as progress:
        assert (progress is not None) == watched
        for done in (1000, 2000) if watched else ():
            progress("file.bin", done, 4000)
    assert ("file.bin" in shown.getvalue()) == watched


def test_verify_passes_over_what_is_not_there():
    result = run("verify", "--all")
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    assert result.output.count("not there") == len(CATALOG) - 1
    assert [line for line in result.output.splitlines() if "digits" in line and "ok" in line]


def test_verify_wants_a_named_set_to_be_there():
    assert run("verify", "digits").exit_code == 0
    result = run("verify", "digits", "yeast")
    assert result.exit_code == 1
    assert "yeast: /nowhere/multilabel/mulan_yeast.npz is not there." in result.output
    assert run("verify", "imagenet").exit_code == 1


def test_verify_tells_what_is_wrong(home):
    for arguments in (["--all"], ["emotions"]):
        result = run("verify", *arguments, home=home)
        assert result.exit_code == 1
        assert "to have 151855 bytes, got" in result.output
    verdicts = json.loads(run("verify", "--all", "--json", home=home).stdout)
    (emotions,) = [row for row in verdicts if row["name"] == "emotions"]
    assert emotions["state"] == "wrong"
    assert emotions["files"] == 1
    assert Path(home).name in emotions["problems"][0]


def test_verify_asks_what_to_check():
    for arguments in ([], ["digits", "--all"]):
        result = run("verify", *arguments)
        assert result.exit_code == 2
        assert "Name data sets, or give --all." in result.output

"""The command line through its real entry point."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

import agra
from agra.cli import main
from agra.experiments.demo import METHODS, Demo, run_demo


def run(*arguments):
    return CliRunner().invoke(main, arguments)


def test_help_fits_a_screen_and_shows_an_example():
    for arguments in ([], ["demo"]):
        shown = run(*arguments, "--help").output
        assert len(shown.splitlines()) <= 24
        assert max(map(len, shown.splitlines())) <= 80
    assert run("demo", "--help").output.endswith("\n  Example: agra demo --seed 7\n")


def test_version():
    assert agra.__version__ in run("--version").output


def test_demo_prints_a_table_of_80_columns():
    result = run("demo", "--runs", "1", "--seed", "3")
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    for word in ("true labels", "given labels", "AGRA", "wrong dropped", "1 run, seed 3"):
        assert word in result.output


def test_demo_as_json_and_by_seed():
    first, again, other = (
        json.loads(run("demo", "--runs", "1", "--seed", seed, "--json").output)
        for seed in ("1", "1", "2")
    )
    for row in [*first, *again, *other]:
        del row["seconds"]
    assert first == again != other
    assert [row["method"] for row in first] == list(METHODS)


def test_judging_helps_on_the_demo():
    rows = list(run_demo(Demo(runs=2)))
    for seed in (0, 1):
        true, given, judged = (
            next(r for r in rows if r.seed == seed and r.method == method) for method in METHODS
        )
        assert true.accuracy > judged.accuracy > given.accuracy + 0.01
        assert judged.wrong_dropped > judged.right_dropped + 0.3


def test_demo_without_noise_has_no_wrong_labels_to_drop():
    result = run("demo", "--runs", "1", "--noise", "0", "--json")
    assert json.loads(result.output)[-1]["wrong_dropped"] is None


def test_bad_options():
    assert run("demo", "--noise", "2").exit_code == 2
    assert "nan is not a number." in run("demo", "--noise", "nan").output
    for seed in ("-1", "99999999999", "x"):
        result = run("demo", "--seed", seed)
        assert result.exit_code == 2
        assert "Invalid value for '--seed'" in result.output
    assert run("demo", "--runs", "0").exit_code == 2
    with pytest.raises(ValueError, match="Expected `runs` to be at least 1, got 0"):
        Demo(runs=0)
    with pytest.raises(ValueError, match=r"Expected `noise` to be in \[0, 1\], got 2"):
        Demo(noise=2)


READY = (
    "import agra.experiments.demo; from agra.cli import main; print('ready', flush=True); main()"
)


def test_an_interrupt_ends_quietly():
    process = subprocess.Popen(
        [sys.executable, "-c", READY, "demo", "--runs", "50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    assert process.stdout.readline() == b"ready\n"  # imports take their time
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.decode() == "Interrupted.\n"

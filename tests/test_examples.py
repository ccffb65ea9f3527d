"""Every example and every code block of the pages runs, and the pages say what is true."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cases import CASES

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    )
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("block", BLOCKS)
def test_code_blocks_run(block):
    torch.manual_seed(0)
    exec(compile(block, "block", "exec"), {})


def test_the_capability_table_is_that_of_the_tests():
    rows = []
    for case in CASES:
        served = [name in case.engines for name in ("linear", "forward", "ghost", "perturbed")]
        marks = ["yes" if yes else "-" for yes in served]
        marks.append("yes" if "per-sample" in case.engines else "one by one")
        rows.append(f"| {case} | " + " | ".join(marks) + " |")
    assert "\n".join(rows) in (ROOT / "docs/engines.md").read_text(encoding="utf-8")


def test_the_reading_order_counts_lines_as_they_are():
    listed = re.findall(r"`(src/agra/\S+\.py)` \((\d+)", (ROOT / "README.md").read_text("utf-8"))
    assert len(listed) > 5
    for name, count in listed:
        lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
        assert abs(lines - int(count)) <= 5, f"{name} has {lines} lines"

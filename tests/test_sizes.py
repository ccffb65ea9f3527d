"""The house's limits: short modules, short functions, few parameters."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "benchmarks").glob("*.py"))
ATTICS = {"utils", "helpers", "common", "misc"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_small(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    assert path.stem not in ATTICS
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= 40, f"{node.name} has {lines} lines"
            positional = [a for a in node.args.args if a.arg not in {"self", "cls"}]
            limit = 7 if node.name.startswith(("_", "compare")) else 4
            assert len(positional) <= limit, f"{node.name} has {len(positional)} positional"

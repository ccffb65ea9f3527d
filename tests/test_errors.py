"""Every `raise` in the package has a test on its text."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = "\n".join(
    path.read_text(encoding="utf-8")
    for path in (ROOT / "tests").glob("test_*.py")
    if path.name != Path(__file__).name
)
# what tests match on, with the escapes of regular expressions and line breaks of strings undone
FLAT = re.sub(r"\"\s*\n\s*f?r?\"", "", TESTS).replace("\\", "")


def literal_parts(node):
    """The fixed pieces of a message, joined where they follow each other."""
    if isinstance(node, ast.JoinedStr):
        return [part.value for part in node.values if isinstance(part, ast.Constant)]
    return [node.value] if isinstance(node, ast.Constant) else []


def raises():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                where = f"{path.relative_to(ROOT / 'src')}:{node.lineno}"
                yield pytest.param(node.exc.args[0], id=where)


@pytest.mark.parametrize("message", list(raises()))
def test_the_text_of_every_error_is_tested(message):
    parts = [part for part in literal_parts(message) if len(part) > 12]
    assert parts, "an error needs a sentence"
    windows = [part[i : i + 20] for part in parts for i in range(max(1, len(part) - 19))]
    assert any(window in FLAT for window in windows), parts

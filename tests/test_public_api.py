"""What is exported is sorted, documented and shown with an example."""

import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import agra

DOCS = Path(__file__).parents[1] / "docs"


def test_names_are_sorted_and_exist():
    assert sorted(agra.__all__) == agra.__all__
    assert all(hasattr(agra, name) for name in agra.__all__)


def test_every_public_name_is_in_the_api_page_and_no_other():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^::: agra\.(\w+)$", page, flags=re.MULTILINE)
    names = [name for name in documented if find_spec(f"agra.{name}") is None]  # no modules
    assert sorted(names) == agra.__all__


def test_every_public_callable_has_an_example():
    for name in agra.__all__:
        thing = getattr(agra, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, name
            if name not in {"Decisions", "Update"}:  # results, shown by what returns them
                assert ">>>" in thing.__doc__, f"{name} has no example"


def test_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", agra.__version__)

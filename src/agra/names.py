"""What users are told: the nearest name, what to install, and warnings where they called."""

import difflib
import importlib
import sys
import warnings
from collections.abc import Iterable
from typing import Any


def check_name(argument: str, name: Any, known: Iterable[str]) -> str:
    """The name itself when it is known.

    Raises:
        ValueError: It is not; the message names the nearest one.
    """
    choices = sorted(known)
    if name in choices:
        return name
    typed = name if isinstance(name, str) else ""
    close = difflib.get_close_matches(typed, choices, n=1, cutoff=0.4)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(f"Expected `{argument}` to be one of {choices}, got {name!r}{hint}")


def warn_caller(message: str) -> None:
    """Warn at the line outside of this package that led here."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("agra."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]  # None at the end
    warnings.warn(message, stacklevel=level)


def optional(package: str, extra: str) -> Any:
    """The package, imported when it is used.

    Raises:
        ModuleNotFoundError: It is not installed; the message says how to.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Expected the package {package!r} to be installed; run pip install 'agra[{extra}]'."
        ) from error

"""Packages that only some encoders need."""

import importlib
from typing import Any


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

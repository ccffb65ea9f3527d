"""Names that users type, and the nearest one when they mistype."""

import difflib
from collections.abc import Iterable


def check_name(argument: str, name: str, known: Iterable[str]) -> str:
    """The name itself when it is known.

    Raises:
        ValueError: It is not; the message names the nearest one.
    """
    choices = sorted(known)
    if name in choices:
        return name
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.4)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(f"Expected `{argument}` to be one of {choices}, got {name!r}{hint}")

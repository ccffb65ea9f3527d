"""The classes of a table: as the user gives them, or as its labels name them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agra.data.readers.cells import class_name, class_names
from agra.data.readers.columns import Layout
from agra.data.readers.records import Records
from agra.label_models.votes import ABSTAIN

Classes = tuple[str, ...]


class Survey(NamedTuple):
    """What the labels of a table are.

    Attributes:
        classes: Their names, in order.
        several: Whether a row may have several.
    """

    classes: Classes
    several: bool


def given_classes(classes: Sequence[Any]) -> Classes:
    """Classes as the user names them.

    Args:
        classes: Strings or numbers.

    Raises:
        ValueError: None, one twice, or something else.

    Example:
        >>> given_classes([0, 1])
        ('0', '1')
    """
    names = [] if isinstance(classes, str) else [class_name(name) for name in classes]
    known = tuple(name for name in names if name)
    if not known or len(set(known)) < len(names):
        raise ValueError(f"Expected `classes` to be different names or numbers, got {classes!r}.")
    return known


def in_order(names: Iterable[str]) -> Classes:
    """Sorted by number where all are numbers, else by letter.

    Example:
        >>> in_order({"10", "9"}), in_order({"spam", "9", "10"})
        (('9', '10'), ('10', '9', 'spam'))
    """
    try:
        numbers = {name: float(name) for name in names}
    except ValueError:
        return tuple(sorted(names))
    if not all(map(math.isfinite, numbers.values())):  # "nan" is a word, too
        return tuple(sorted(numbers))
    return tuple(sorted(numbers, key=lambda name: (numbers[name], name)))


def survey(parts: Iterable[Records], layout: Layout) -> Survey:
    """The classes of a table, as its labels name them; without labels, as its votes do.

    Args:
        parts: All of its rows.
        layout: Its columns.

    Raises:
        ValueError: No label at all.

    Example:
        >>> import pandas as pd
        >>> from agra.data.readers.columns import USUAL
        >>> cells = pd.DataFrame({"text": ["a", "b"], "label": ["10", "9"]})
        >>> layout = Layout.of("a.csv", list(cells), USUAL, None)
        >>> survey([Records("a.csv", cells, [2, 3], "line")], layout)
        Survey(classes=('9', '10'), several=False)
    """
    if isinstance(layout.label, Mapping):
        return Survey(tuple(layout.label), several=True)
    named: set[str] = set()
    cast: set[str] = set()
    several, file = False, ""
    for records in parts:
        file = records.file
        several |= has_several(records, layout)
        for target in (layout.label, layout.true_label):
            if isinstance(target, str):
                named |= _named(records, target)
        if not named:
            cast |= {name for column in layout.votes for name in class_names(records, column)}
    found = (named or cast - {str(ABSTAIN)}) - {""}
    if not found:
        raise ValueError(f"Expected labels or votes in {file}, got empty cells only.")
    return Survey(in_order(found), several)


def has_several(records: Records, layout: Layout) -> bool:
    """Whether these rows have several labels: a column per class, or lists in a column.

    Args:
        records: Some rows.
        layout: Their columns.

    Example:
        >>> import pandas as pd
        >>> from agra.data.readers.columns import USUAL
        >>> cells = pd.DataFrame({"text": ["a", "b"], "label": [["warm", "wet"], None]})
        >>> part = Records("days.jsonl", cells, [1, 2], "line")
        >>> has_several(part, Layout.of("days.jsonl", list(cells), USUAL, None))
        True
    """
    targets = [target for target in (layout.label, layout.true_label) if target]
    return any(not isinstance(each, str) or _has_lists(records, each) for each in targets)


def _has_lists(records: Records, column: str) -> bool:
    return any(isinstance(cell, list) for cell in records.cells[column])


def _named(records: Records, column: str) -> set[str]:
    if not _has_lists(records, column):
        return set(class_names(records, column))
    cells = (cell if isinstance(cell, list) else [cell] for cell in records.cells[column])
    return {name for cell in cells for name in map(class_name, cell) if name}

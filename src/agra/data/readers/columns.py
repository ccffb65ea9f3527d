"""Which column of a table is what: named by the user, or found by its usual name."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Names = str | Sequence[str]
Found = list[tuple[str, str]]  # what `*` stands for in the name of a column, and the column
Target = str | Mapping[str, str]  # one column of class names, or a 0/1 column per class


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table, each None where its usual name is used if it is there.

    A name may hold one ``*``, which stands for anything.

    Attributes:
        text: Of texts; usually "text".
        path: Of image files; usually "path".
        features: Of numbers; all columns of no other use, if there is neither text nor path.
        label: Of class names, or of lists of them; usually "label". A pattern or a list of names
            means one 0/1 column per class; usually "label_*", where the ``*`` is the class.
        true_label: What is known to be right, in the same way; usually "true_label(_*)".
        id: Usually "id".
        ignore: Columns that are left out; "*" for all that have no other use.

    Example:
        >>> Columns(text="body", label="topic_*", ignore=["url", "meta_*"]).text
        'body'
    """

    text: str | None = None
    path: str | None = None
    features: Names | None = None
    label: Names | None = None
    true_label: Names | None = None
    id: str | None = None
    ignore: Names = ()


USUAL = Columns()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the columns of one table are.

    Attributes:
        kind: What the inputs are.
        inputs: Their columns.
        label: Of the given labels; None to take the majority of the votes.
        true_label: None if there are none.
        votes: One column per function.
        id: None for row numbers.
    """

    kind: Literal["text", "path", "features"]
    inputs: tuple[str, ...]
    label: Target | None
    true_label: Target | None
    votes: tuple[str, ...]
    id: str | None

    @classmethod
    def of(
        cls, file: str, present: Sequence[str], columns: Columns, votes: Names | None
    ) -> "Layout":
        """Of the columns that are present.

        Args:
            file: For messages.
            present: The names in the header.
            columns: What the user says of them.
            votes: Names of the vote columns; None for "lf_*" and "vote_*".

        Raises:
            ValueError: A column is missing, or has no use.

        Example:
            >>> Layout.of("mails.csv", ["text", "label"], USUAL, None).inputs
            ('text',)
        """
        left = _Left(file, present)
        ignore = [columns.ignore] if isinstance(columns.ignore, str) else columns.ignore
        left.take("ignore", [pattern for pattern in ignore if pattern != "*"])
        row_names = left.take("id", columns.id, ["id"])
        label = _target(left.take("label", columns.label, ["label", "label_*"]), columns.label)
        truth = left.take("true_label", columns.true_label, ["true_label", "true_label_*"])
        kind, inputs = left.take_inputs(columns)
        cast = left.take("votes", votes, ["lf_*", "vote_*"])
        if label is None and not cast:
            raise ValueError(
                f"Expected a column 'label' in {file}, or columns of votes, got "
                f"{list(present)[:8]}{left.nearest('label')}; name it with `Columns(label=...)`."
            )
        if kind == "features" and not inputs:
            inputs = left.take_rest()
        if "*" not in ignore:
            left.check_used()
        return cls(
            kind=kind,
            inputs=tuple(inputs),
            label=label,
            true_label=_target(truth, columns.true_label),
            votes=tuple(name for _, name in cast),
            id=row_names[0][1] if row_names else None,
        )


class _Left:
    """The columns of a file that have no use yet."""

    def __init__(self, file: str, present: Sequence[str]) -> None:
        self._file = file
        # a first column without a name is the row index that data frames write by themselves
        self._names = [name for place, name in enumerate(present) if name or place]

    def take(self, argument: str, wanted: Names | None, usual: Sequence[str] = ()) -> Found:
        """The columns of one use, each after what ``*`` stands for in its name."""
        if wanted is None:
            return self._used(next(filter(None, map(self._matches, usual)), []))
        taken: Found = []
        for pattern in [wanted] if isinstance(wanted, str) else wanted:
            found = self._matches(pattern)
            if not found:
                raise ValueError(
                    f"Expected a column {pattern!r} in {self._file}, as `{argument}` says, got "
                    f"{self._names[:8]}{self.nearest(pattern)}."
                )
            taken += self._used(found)
        return taken

    def take_inputs(
        self, columns: Columns
    ) -> tuple[Literal["text", "path", "features"], list[str]]:
        named = columns.text or columns.path or columns.features
        text = self.take("text", columns.text, [] if named else ["text"])
        path = self.take("path", columns.path, [] if named else ["path"])
        numbers = self.take("features", columns.features)
        inputs = [name for _, name in (*text, *path, *numbers)]
        if len(text) + len(path) + bool(numbers) > 1:
            raise ValueError(
                f"Expected one column of texts or paths, or columns of numbers, as inputs in "
                f"{self._file}, got {inputs[:8]}; leave one out with `Columns(ignore=...)`."
            )
        kind: Literal["text", "path", "features"]
        kind = "text" if text else "path" if path else "features"
        return kind, inputs

    def take_rest(self) -> list[str]:
        if not self._names:
            raise ValueError(
                f"Expected a column 'text' or 'path', or columns of numbers, in {self._file}, got "
                "none; name it with `Columns(text=...)`."
            )
        rest, self._names = self._names, []
        return rest

    def check_used(self) -> None:
        if self._names:
            raise ValueError(
                f"Expected every column of {self._file} to have a use, got {self._names[:8]} "
                "besides; name them in `votes` or `Columns(...)`, or leave them out with "
                "`Columns(ignore=...)`."
            )

    def nearest(self, name: str) -> str:
        close = difflib.get_close_matches(name, self._names, n=1, cutoff=0.4)
        return f"; did you mean {close[0]!r}" if close else ""

    def _matches(self, pattern: str) -> Found:
        if pattern in self._names:
            return [(pattern, pattern)]
        start, star, end = pattern.partition("*")
        size = len(start) + len(end)
        return [
            (name[len(start) : len(name) - len(end)], name)
            for name in self._names
            if star and len(name) > size and name.startswith(start) and name.endswith(end)
        ]

    def _used(self, found: Found) -> Found:
        taken = {name for _, name in found}
        self._names = [name for name in self._names if name not in taken]
        return found


def _target(taken: Found, wanted: Names | None) -> Target | None:
    if not taken:
        return None
    (key, name), *more = taken
    if key == name and not more and isinstance(wanted, str | None):
        return name
    classes = dict(taken)
    if len(classes) < len(taken):
        raise ValueError(
            f"Expected one column per class, got {[name for _, name in taken][:8]}, of which two "
            "are for the same one."
        )
    return classes

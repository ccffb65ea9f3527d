"""What the catalog says of a data set: where its files come from, and what must be in them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agra.data.dataset import NoisyDataset

Splits = dict[str, NoisyDataset]


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A tar archive that holds files of a data set.

    Attributes:
        path: Where it is kept in the data home until it is unpacked.
        url: Where it is published.
        size: In bytes.
        sha256: Of its content.
    """

    path: str
    url: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class File:
    """One file of a data set.

    Attributes:
        path: In the data home.
        origin: The page it is published on.
        size: In bytes; None if not known, because the file is not for everybody.
        sha256: Of its content; None likewise.
        url: Where exactly this file can be downloaded; None if there is no such place.
        archive: What it can be unpacked from, and its name in there.
        instead: Another form of the file, which serves as well.
        how: How to make it of what is published, if it is not published in this form.
        optional: Whether the set can do without.
    """

    path: str
    origin: str
    size: int | None = None
    sha256: str | None = None
    url: str | None = None
    archive: tuple[Archive, str] | None = None
    instead: "File | None" = None
    how: str = ""
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a data set must contain when it is loaded without further wishes.

    Attributes:
        rows: By split, or by several joined by " + " where a draw divides them.
        classes: How many.
        wrong: How many given labels of the training split are; None if nobody knows.
        given: How often each class was given in the training split; empty if not checked.
    """

    rows: Mapping[str, int]
    classes: int
    wrong: int | None = None
    given: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a loader is asked for.

    Attributes:
        entry: Of the data set.
        find: From a path in the data home to the file, which is downloaded if need be.
        noise: Which noise; None for the set's own.
        seed: Of whatever is drawn.
    """

    entry: "Entry"
    find: Callable[[str], Path]
    noise: str | float | None
    seed: int

    @property
    def name(self) -> str:
        """Of the data set."""
        return self.entry.name

    def folder(self, paths: Iterable[str]) -> Path:
        """The folder of files that lie side by side, once all of them are there."""
        found = [self.find(path) for path in paths]
        return found[0].parent

    def refuse_noise(self) -> None:
        """For sets whose labels can only be had as they are.

        Raises:
            ValueError: Some noise was asked for.
        """
        if self.noise is not None:
            raise ValueError(
                f"Expected `noise` to be None for {self.name!r}, whose labels are delivered as "
                f"they are, got {self.noise!r}; inject noise with agra.data.noise."
            )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set of the catalog.

    Attributes:
        name: What `load_dataset` calls it.
        title: In a few words.
        origin: The page it is published on.
        citation: Whom to cite.
        licence: As stated there, or "not stated".
        noise: Where its wrong labels come from.
        counts: What must be in it.
        load: Makes the splits.
        files: What it consists of.
        notes: What one should know of it.
    """

    name: str
    title: str
    origin: str
    citation: str
    licence: str
    noise: str
    counts: Counts
    load: Callable[[Request], Splits]
    files: tuple[File, ...] = ()
    notes: str = ""

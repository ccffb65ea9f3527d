"""Data sets by name: where they come from, what is in them, and `load_dataset`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, overload

from agra.data.catalog.entry import Archive, Counts, Entry, File, Request, Splits
from agra.data.catalog.files import obtain
from agra.data.catalog.images import CHEXPERT, CIFAR10, DIGITS
from agra.data.catalog.tables import MULTILABEL, MUSIC_GENRE
from agra.data.catalog.texts import HAUSA, SMS, TREC, YORUBA, YOUTUBE
from agra.data.dataset import NoisyDataset
from agra.data.download import Progress
from agra.data.home import data_home
from agra.names import check_name

__all__ = ["CATALOG", "Archive", "Counts", "Entry", "File", "load_dataset"]

_ENTRIES = (
    *(DIGITS, YOUTUBE, SMS, TREC, YORUBA, HAUSA, CIFAR10, CHEXPERT, MUSIC_GENRE),
    *MULTILABEL,
)
CATALOG: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}

Split = Literal["train", "valid", "test"]


@overload
def load_dataset(
    name: str,
    *,
    split: None = None,
    home: str | Path | None = None,
    noise: str | float | None = None,
    seed: int = 0,
    download: bool = True,
    progress: Progress | None = None,
) -> Splits: ...


@overload
def load_dataset(
    name: str,
    *,
    split: Split,
    home: str | Path | None = None,
    noise: str | float | None = None,
    seed: int = 0,
    download: bool = True,
    progress: Progress | None = None,
) -> NoisyDataset: ...


def load_dataset(
    name: str,
    *,
    split: Split | None = None,
    home: str | Path | None = None,
    noise: str | float | None = None,
    seed: int = 0,
    download: bool = True,
    progress: Progress | None = None,
) -> Splits | NoisyDataset:
    """A data set with noisy training labels by its name in the catalog.

    Files in the data home are used; what is not there is downloaded if it is published as a file.

    Args:
        name: For example "digits", which needs no files; `agra data list` shows them all.
        split: "train", "valid" or "test" for one of them; by default a dict of those there are.
        home: The data home; by default ``AGRA_DATA_HOME``, else the user's cache folder.
        noise: Which wrong labels, where there is a choice: for "digits" their share; for "cifar10"
            the name of a published set, see its notes in the catalog.
        seed: Of draws: the noise of "digits", and splits where none are published.
        download: Whether files that are not there may be downloaded.
        progress: Called with file name, bytes so far and bytes in all during a download.

    Raises:
        ValueError: An unknown name, split or noise; a file whose content is wrong.
        FileNotFoundError: A file that is not there and cannot be downloaded; the message says
            where it comes from and where to put it.
        ConnectionError: No network, or a connection that broke.
        OSError: A full disk.
        ImportError: A package needed for downloads is missing.

    Example:
        >>> splits = load_dataset("digits", seed=1)
        >>> splits["train"]
        <NoisyDataset digits train: 1257 numbers, 10 classes, 30.0% wrong>
        >>> load_dataset("digits", split="test").noise_rate
        0.0
    """
    entry = CATALOG[check_name("name", name, CATALOG)]
    if not 0 <= seed < 2**32:
        raise ValueError(f"Expected `seed` to be in [0, 2**32 - 1], got {seed}.")
    if split is not None:
        check_name("split", split, _split_names(entry))
    request = Request(
        entry=entry, find=_finder(entry, home, download, progress), noise=noise, seed=seed
    )
    splits = entry.load(request)
    return splits if split is None else splits[split]


def _split_names(entry: Entry) -> list[str]:
    return [name for key in entry.counts.rows for name in key.split(" + ")]


def _finder(
    entry: Entry, home: str | Path | None, allowed: bool, progress: Progress | None
) -> Callable[[str], Path]:
    if not entry.files:  # nor is there a need for a data home
        return Path
    return partial(obtain, data_home(home), entry, allowed=allowed, progress=progress)

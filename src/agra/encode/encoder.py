"""What an encoder is, and how the splits of a data set are encoded."""

import importlib.metadata
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, overload

from agra.data.dataset import NoisyDataset
from agra.encode.cache import Cache, Rows
from agra.encode.fingerprint import data_fingerprint
from agra.encode.scratch import Scratch

Report = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
Splits = Mapping[str, NoisyDataset]


class Encoder(ABC):
    """Turns inputs into rows of numbers.

    Attributes:
        name: In manifests.
        reads: The kinds of inputs it can read.
        packages: Those whose version may change the numbers.

    Example:
        >>> class Lengths(Encoder):
        ...     name, reads, packages = "lengths", ("texts",), ()
        ...
        ...     def settings(self):
        ...         return {}
        ...
        ...     def rows(self, train, splits, scratch, report):
        ...         return {name: [[len(t)] for t in part.inputs] for name, part in splits.items()}
        >>> texts = NoisyDataset(inputs=["a cat", "the dog"], labels=[0, 1], classes=("c", "d"))
        >>> encode(texts, Lengths()).inputs.tolist()
        [[5], [7]]
    """

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]]

    @property
    def uses_labels(self) -> bool:
        """Whether the given labels of the training split change the numbers."""
        return False

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on, except the data and the packages, for JSON."""

    @abstractmethod
    def rows(
        self, train: NoisyDataset, splits: Splits, scratch: Scratch, report: Report
    ) -> dict[str, Rows]:
        """The rows of every split, from what the training split alone has taught.

        Args:
            train: The split to fit on.
            splits: All splits, that one among them.
            scratch: Keeps what is done until everything is.
            report: Called as the work goes on.
        """

    def check(self, split: str, data: NoisyDataset) -> None:
        """Refuse inputs of a kind that cannot be read.

        Raises:
            TypeError: Numbers for an encoder of texts, and the like.
        """
        if len(data) and data.kind not in self.reads:
            raise TypeError(
                f"Expected {' or '.join(self.reads)} as inputs of the {split} split for "
                f"{type(self).__name__}, got {data.kind}; choose another encoder."
            )


@overload
def encode(
    splits: NoisyDataset,
    encoder: Encoder,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Report | None = None,
) -> NoisyDataset: ...


@overload
def encode(
    splits: Splits,
    encoder: Encoder,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Report | None = None,
) -> dict[str, NoisyDataset]: ...


def encode(
    splits: NoisyDataset | Splits,
    encoder: Encoder,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Report | None = None,
) -> NoisyDataset | dict[str, NoisyDataset]:
    """The same data with numbers as inputs.

    Args:
        splits: Data sets by split, of which "train" is fitted on; or one, which then is.
        encoder: `TfIdf`, `SentenceEmbeddings` or `ImageFeatures`.
        cache: A folder of finished encodings, such as `cache_folder()`: what is there for the same
            data, encoder and settings is read instead of made, and a run that was stopped goes on
            where it was. None keeps nothing.
        progress: Called with what is being done, how many steps are done, and how many there are.

    Raises:
        TypeError: Inputs that the encoder does not read.
        ValueError: No training split, or a name of a split that cannot name a file.

    Example:
        >>> from agra.encode import TfIdf
        >>> texts = NoisyDataset(inputs=["a cat", "the dog"], labels=[0, 1], classes=("c", "d"))
        >>> encode(texts, TfIdf()).inputs.shape
        (2, 3)
    """
    named = {splits.split: splits} if isinstance(splits, NoisyDataset) else dict(splits)
    train = splits if isinstance(splits, NoisyDataset) else named.get("train")
    if train is None:
        raise ValueError(
            f"Expected `splits` to hold 'train', which encoders are fitted on, got {list(named)}."
        )
    for name, data in named.items():
        if not re.fullmatch(r"\w[\w-]*", name):
            raise ValueError(
                f"Expected the names of `splits` to be letters, digits, - and _, got {name!r}."
            )
        encoder.check(name, data)
    report = progress or _silence
    if cache is None:
        rows = encoder.rows(train, named, Scratch(None), report)
    else:
        rows = _cached(Cache(Path(cache)), encoder, (train, named), report)
    encoded = {name: data.replace(inputs=rows[name]) for name, data in named.items()}
    return encoded[splits.split] if isinstance(splits, NoisyDataset) else encoded


def describe(encoder: Encoder, train: NoisyDataset, splits: Splits) -> dict[str, Any]:
    """All that an encoding depends on, for JSON."""
    return {
        "encoder": encoder.name,
        "settings": encoder.settings(),
        "versions": {name: importlib.metadata.version(name) for name in encoder.packages},
        "data": {
            name: data_fingerprint(data, labels=encoder.uses_labels and data is train)
            for name, data in splits.items()
        },
    }


def _cached(
    store: Cache, encoder: Encoder, data: tuple[NoisyDataset, Splits], report: Report
) -> dict[str, Rows]:
    what = describe(encoder, *data)
    rows = store.load(what)
    if rows is None or rows.keys() != data[1].keys():
        scratch = store.scratch(what)
        made = encoder.rows(*data, scratch, report)
        store.save(what, made)
        scratch.clear()
        rows = store.load(what)
        rows = made if rows is None else rows  # another process may have replaced it by its own
    return rows


def _silence(what: str, done: int, total: int) -> None:
    """The library prints nothing."""

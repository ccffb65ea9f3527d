"""``agra encode``."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from agra.data.dataset import NoisyDataset
    from agra.encode import Encoder

_ENCODERS = ("tfidf", "sentences", "images")


@click.command(epilog="Example: agra encode youtube --encoder tfidf -o youtube.npz")
@click.argument("data")
@click.option("--text", help="The column of texts in a table; text.")
@click.option("--label", help="That of labels; label.")
@click.option("--encoder", type=click.Choice(_ENCODERS), required=True, help="What to turn it by.")
@click.option("--model", help="A Hugging Face folder, or a name on its hub.")
@click.option("--pixels", type=click.IntRange(1), help="Size of the images; the model's.")
@click.option("--components", type=click.IntRange(1), help="Keep as many by a PCA.")
@click.option("--data-home", type=click.Path(file_okay=False, path_type=Path), help="Of data sets.")
@click.option("--cache", type=click.Path(path_type=Path), help="Folder of what is done already.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The .npz file to write.",
)
def encode(data: str, output: Path, **options: Any) -> None:
    """Turn the texts or images of DATA into rows of numbers.

    DATA is a name of the catalog, or a table: .csv, .tsv, .jsonl or .parquet. The encoder is fitted
    on the training split; a table is one.
    """
    encoder = _encoder(options)
    if output.suffix != ".npz" or not output.resolve().parent.is_dir():
        raise click.UsageError(
            f"--output must be a file that ends in .npz, in a folder that exists, got {output}."
        )
    from agra.encode import cache_folder, save_encoded
    from agra.encode import encode as encode_splits

    try:
        with _bar() as report:
            splits = _splits(data, options, report)
            encoded = encode_splits(
                splits, encoder, cache=options["cache"] or cache_folder(), progress=report
            )
        about = {"encoder": encoder.name, "settings": encoder.settings()}
        save_encoded(encoded, output, about=about)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise click.ClickException(f"Nothing was written. {error}") from error
    for split, part in encoded.items():
        rows, columns = part.inputs.shape
        click.echo(f"{split}: {rows} rows of {columns} numbers")
    click.echo(f"written to {output}")


def _splits(data: str, options: dict[str, Any], report: Any) -> "dict[str, NoisyDataset]":
    if Path(data).is_file():
        from agra.data.readers.tables import Columns, read_table

        columns = Columns(text=options["text"], label=options["label"], ignore="*")
        return {"train": read_table(data, columns=columns)}
    from agra.data.catalog import load_dataset

    return load_dataset(data, home=options["data_home"], progress=report)


def _encoder(options: dict[str, Any]) -> "Encoder":
    """The encoder that was asked for, with no option that it would ignore."""
    from agra.encode import ImageFeatures, SentenceEmbeddings, TfIdf

    name, model = options["encoder"], options["model"]
    taken = {"tfidf": (), "sentences": ("model",), "images": ("model", "pixels", "components")}
    for option in ("model", "pixels", "components"):
        if options[option] is not None and option not in taken[name]:
            raise click.UsageError(f"--{option} means nothing to --encoder {name}.")
    if name == "tfidf":
        return TfIdf()
    if model is None:
        raise click.UsageError(f"--encoder {name} needs a --model.")
    if name == "sentences":
        return SentenceEmbeddings(model)
    return ImageFeatures(model, pixels=options["pixels"], components=options["components"])


@contextlib.contextmanager
def _bar() -> "Iterator[Callable[[str, int, int | None], None]]":
    """A bar on a terminal, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    ) as bar:
        task = bar.add_task("encoding", total=None)

        def report(what: str, done: int, total: int | None) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield report

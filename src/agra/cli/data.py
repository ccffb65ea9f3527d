"""``agra data``: what the catalog offers, and what lies in the data home."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

    from agra.data.catalog import Entry
    from agra.data.catalog.check import Verdict
    from agra.data.download import Progress

HOME = click.option(
    "--data-home",
    "home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the data sets.  [default: AGRA_DATA_HOME, or the user's cache]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@click.group(epilog="Example: agra data list")
def data() -> None:
    """List, fetch, locate and check data sets."""


@data.command("list", epilog="Example: agra data list --json")
@HOME
@JSON
def list_sets(home: Path | None, as_json: bool) -> None:
    """Show the data sets of the catalog."""
    from agra.data.catalog import CATALOG

    with _plain_errors():
        rows = [_summary(entry, home) for entry in CATALOG.values()]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = _table("name", "train rows", "classes", "noise", "wrong", "files")
    for row in rows:
        wrong = "-" if row["noise_rate"] is None else f"{row['noise_rate']:.1%}"
        size = f"{next(iter(row['rows'].values())):,}"
        table.add_row(row["name"], size, str(row["classes"]), row["noise"], wrong, row["files"])
    _print(table)


@data.command(epilog="Example: agra data get cifar10")
@click.argument("names", nargs=-1, required=True)
@HOME
def get(names: tuple[str, ...], home: Path | None) -> None:
    """Download the files of data sets that are not there yet."""
    from agra.data.catalog import CATALOG
    from agra.data.catalog.files import obtain
    from agra.data.home import data_home
    from agra.names import check_name

    with _plain_errors(), _progress() as progress:
        for name in names:
            check_name("name", name, CATALOG)
        for name in names:
            entry = CATALOG[name]
            for file in entry.files:
                if not file.optional:
                    obtain(data_home(home), entry, file.path, allowed=True, progress=progress)
            click.echo(f"{name}: all files are there." if entry.files else f"{name}: built in.")


@data.command(epilog="Example: agra data path trec")
@click.argument("name", required=False)
@HOME
def path(name: str | None, home: Path | None) -> None:
    """Print where data sets, or the files of one, belong."""
    from agra.data.catalog import CATALOG
    from agra.data.home import data_home, inside
    from agra.names import check_name

    with _plain_errors():
        root = data_home(home)
        if name is None:
            click.echo(root)
            return
        for file in CATALOG[check_name("name", name, CATALOG)].files:
            click.echo(inside(root, file.path))


@data.command(epilog="Example: agra data verify --all")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All sets of which something is there.")
@HOME
@JSON
def verify(names: tuple[str, ...], everything: bool, home: Path | None, as_json: bool) -> None:
    """Check the files of data sets, and what is in them.

    Size, SHA-256, and counts of the loaded set. Exit code 1 if something is wrong, or if a set
    that is named is not there; with --all, absent sets are passed over.
    """
    from agra.data.catalog import CATALOG
    from agra.data.catalog.check import verify as check

    if bool(names) == everything:
        raise click.UsageError("Name data sets, or give --all.")
    with _plain_errors():
        verdicts = [check(name, home) for name in names or CATALOG]
    if as_json:
        click.echo(json.dumps([asdict(verdict) for verdict in verdicts], indent=2))
    else:
        _print(_verdict_table(verdicts))
        for verdict in verdicts:
            if verdict.state == "wrong" or names:
                for problem in verdict.problems:
                    click.echo(f"{verdict.name}: {problem}", err=True)
    bad = {"wrong"} if everything else {"wrong", "incomplete", "not there"}
    if any(verdict.state in bad for verdict in verdicts):
        click.get_current_context().exit(1)


def _summary(entry: "Entry", home: Path | None) -> dict[str, Any]:
    from agra.data.catalog.files import present
    from agra.data.home import data_home

    counts, needed = entry.counts, [file for file in entry.files if not file.optional]
    here = sum(present(data_home(home), file) is not None for file in needed)
    first = next(iter(counts.rows.values()))
    return {
        "name": entry.name,
        "title": entry.title,
        "rows": dict(counts.rows),
        "classes": counts.classes,
        "noise": entry.noise,
        "noise_rate": None if counts.wrong is None else counts.wrong / first,
        "licence": entry.licence,
        "origin": entry.origin,
        "citation": entry.citation,
        "notes": entry.notes,
        "files": f"{here} of {len(needed)}" if needed else "built in",
    }


def _verdict_table(verdicts: "list[Verdict]") -> "Table":
    table = _table("name", "files checked", "rows", "result")
    for verdict in verdicts:
        rows = "-" if verdict.rows is None else f"{verdict.rows:,}"
        note = ""
        if verdict.state == "incomplete":
            note = f": {len(verdict.problems)} files are not there"
        table.add_row(verdict.name, str(verdict.files), rows, verdict.state + note)
    return table


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table()
    for column in columns:
        numbers = column in {"train rows", "classes", "wrong", "files checked", "rows"}
        table.add_column(column, justify="right" if numbers else "left")
    return table


def _print(table: "Table") -> None:
    from rich.console import Console

    Console().print(table)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """What the library refuses, as one line."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        click.echo(f"Error: {error}", err=True)
        click.get_current_context().exit(1)


@contextmanager
def _progress() -> "Iterator[Progress | None]":
    """A bar per file, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        yield _advance(bar)


def _advance(bar: Any) -> Callable[[str, int, int | None], None]:
    tasks: dict[str, Any] = {}

    def advance(name: str, done: int, total: int | None) -> None:
        if name not in tasks:
            tasks[name] = bar.add_task(name)
        bar.update(tasks[name], completed=done, total=total)

    return advance

"""``agra noise``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import agra
from agra.cli.options import number

if TYPE_CHECKING:
    from rich.table import Table

    from agra.data.noise import Noise
    from agra.data.noise.reading import LabelFile

_ASKS = {  # what each kind cannot do without
    "symmetric": ("amount",),
    "pair": ("amount",),
    "sparse": ("amount", "sparsity"),
    "matrix": ("matrix",),
    "instance": ("amount", "features"),
}
_SHOWN = 12  # classes in the printed table
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Put wrong labels into a file of labels.",
    epilog="Example: agra noise train.csv --kind pair --amount 0.2 -o noisy.csv",
)
@click.argument("labels", type=_FILE)
@click.option(
    "--kind",
    type=click.Choice(list(_ASKS)),
    default="symmetric",
    metavar="KIND",
    help="symmetric (default), pair, sparse, matrix or instance.",
)
@click.option(
    "--amount",
    type=click.FloatRange(0, 1),
    callback=number,
    metavar="SHARE",
    help="Share of wrong labels, 0 to 1.",
)
@click.option(
    "--sparsity",
    type=click.FloatRange(0, 1),
    callback=number,
    metavar="SHARE",
    help="For sparse: zeros among the noise rates.",
)
@click.option("--matrix", type=_FILE, help="For matrix: CSV, true classes by given ones.")
@click.option("--features", type=_FILE, help="For instance: .npy, or SciPy's .npz.")
@click.option("--column", default="label", show_default=True, help="Of the labels in a CSV.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**31), metavar="N", help="Default: 0.")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="CSV to write.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
def noise(labels: Path, column: str, out: Path, as_json: bool, **choices: Any) -> None:
    """Put wrong labels into LABELS: a .csv, or a .npy or .txt of integers.

    Writes the columns id, label and true_label, and OUT.json: how they were made.
    """
    _check(labels, out, choices)
    from agra.data.noise.reading import read_labels
    from agra.data.noise.writing import fingerprint, write_noise

    settings = {
        name: fingerprint(choices[name]) if isinstance(choices[name], Path) else choices[name]
        for name in _ASKS[choices["kind"]]
    }
    made = {
        "agra": agra.__version__,
        "kind": choices["kind"],
        "settings": {**settings, "column": column},
        "seed": choices["seed"],
        "input": fingerprint(labels),
    }
    try:
        given = read_labels(labels, column)
        result = _inject(given, **choices)
        manifest = write_noise(out, given, result, made)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"Nothing was written. {error}") from error
    if as_json:
        click.echo(json.dumps(manifest, indent=2))
        return
    from rich.console import Console

    Console().print(_table(out, given, result))


def _check(labels: Path, out: Path, choices: dict[str, Any]) -> None:
    for name in ("amount", "sparsity", "matrix", "features"):
        asked = name in _ASKS[choices["kind"]]
        if asked != (choices[name] is not None):
            raise click.UsageError(
                f"Expected {'a' if asked else 'no'} --{name} for noise of kind {choices['kind']}, "
                f"got {choices[name]}."
            )
    read = [path.resolve() for path in (labels, *choices.values()) if isinstance(path, Path)]
    if {out.resolve(), out.with_name(f"{out.name}.json").resolve()} & set(read):
        raise click.UsageError(
            f"Expected --out to be a new file, got one that is read here: {out}."
        )


def _inject(given: "LabelFile", *, kind: str, seed: int, amount: float, **choices: Any) -> "Noise":
    from agra.data import noise as kinds
    from agra.data.readers.arrays import read_array

    codes, size = given.codes, len(given.classes)
    if kind == "matrix":
        matrix, _ = read_array(choices["matrix"], "matrix")
        if len(matrix) != size:
            raise ValueError(
                f"Expected --matrix to have one row for each of the {size} classes that occur, in "
                f"the order of {list(given.classes[:8])}, got {len(matrix)}."
            )
        return kinds.matrix_noise(codes, matrix, seed=seed)
    if kind == "sparse":
        sparsity = choices["sparsity"]
        return kinds.sparse_noise(codes, amount, size, sparsity=sparsity, seed=seed)
    if kind == "instance":
        features, _ = read_array(choices["features"], "features")
        return kinds.instance_noise(codes, amount, size, features, seed=seed)
    inject = kinds.pair_noise if kind == "pair" else kinds.symmetric_noise
    return inject(codes, amount, size, seed=seed)


def _table(out: Path, given: "LabelFile", result: "Noise") -> "Table":
    from rich.table import Table
    from rich.text import Text

    matrix, classes = result.matrix, given.classes
    wrong = int(matrix.sum() - matrix.trace())
    table = Table(
        title=Text(
            f"{_shown(out.name)}: {wrong} of {matrix.sum()} labels wrong, {result.rate:.1%}"
        ),
        title_justify="left",
        caption=f"and {len(classes) - _SHOWN} more classes" if len(classes) > _SHOWN else None,
    )
    table.add_column("true class", no_wrap=True, overflow="ellipsis", max_width=28)
    for name in ("labels", "wrong"):
        table.add_column(name, justify="right")
    table.add_column("most of them given", no_wrap=True, overflow="ellipsis", max_width=28)
    for k, row in enumerate(matrix[:_SHOWN].tolist()):
        total, row[k] = sum(row), 0
        shown = [_shown(classes[k]), _shown(classes[row.index(max(row))]) if max(row) else "-"]
        share = f"{sum(row) / total:.1%}" if total else "-"
        table.add_row(Text(shown[0]), str(total), share, Text(shown[1]))
    return table


def _shown(name: str) -> str:
    """The name, escaped if a terminal could take it for a command."""
    return name if name.isprintable() else ascii(name)

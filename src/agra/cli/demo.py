"""``agra demo``."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from agra.cli.options import number

if TYPE_CHECKING:
    from rich.table import Table

    from agra.experiments.demo import Demo, Run, Summary
    from agra.loop import Progress as Step


@click.command(epilog="Example: agra demo --seed 7")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**31), help="Of the first run."
)
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1), help="Seeds to run.")
@click.option(
    "--noise",
    default=0.3,
    show_default=True,
    type=click.FloatRange(0, 1),
    callback=number,
    help="Share of wrong labels.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def demo(seed: int, runs: int, noise: float, as_json: bool) -> None:
    """Train on digits with wrong labels, with and without judging."""
    import torch

    from agra.experiments.demo import Demo, summarise

    torch.set_num_threads(1)  # the steps are too small to share; threads would only wait
    plan = Demo(seed=seed, runs=runs, noise=noise)
    rows = summarise(_run_with_progress(plan))
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    from rich.console import Console

    console = Console()
    console.print(_demo_table(plan, rows))
    console.print(
        "dropped: the share of judgements, over all updates, that left a sample out.\n"
        "What a sample is worth depends on the model and the moment: right labels are\n"
        "left out at times, and wrong ones that do no harm are kept.",
        style="dim",
        highlight=False,
    )


def _run_with_progress(plan: "Demo") -> "list[Run]":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from agra.experiments.demo import METHODS, run_demo

    runs = []
    total = plan.runs * len(METHODS) * plan.epochs
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    ) as bar:
        task = bar.add_task("training", total=total)

        def advance(step: "Step") -> None:
            bar.update(task, advance=1 / step.steps)

        for run in run_demo(plan, advance):
            runs.append(run)
            bar.update(task, description=f"{len(runs)} of {plan.runs * len(METHODS)} done")
    return runs


def _demo_table(plan: "Demo", rows: "list[Summary]") -> "Table":
    from rich.table import Table

    runs = "1 run, seed" if plan.runs == 1 else f"{plan.runs} runs from seed"
    table = Table(
        title=f"Digits, {plan.noise:.0%} wrong labels, {runs} {plan.seed}", title_justify="left"
    )
    table.add_column("trained on")
    for name in ("test accuracy", "wrong dropped", "right dropped", "seconds"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            "given labels, AGRA" if row.method == "AGRA" else row.method,
            f"{row.accuracy:.1%} ± {row.deviation:.1%}",
            *("-" if s is None else f"{s:.0%}" for s in (row.wrong_dropped, row.right_dropped)),
            f"{row.seconds:.1f}",
        )
    return table

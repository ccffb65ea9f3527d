"""What drawing a comparison batch costs, as the training set grows.

    python benchmarks/draw_cost.py [--markdown]

Row numbers of 128 samples without replacement, from 1e4 to 1e7 rows:
``ComparisonSampler.draw_rows`` with both kinds of weights, against ``torch.multinomial`` with the
same weights, which is linear in the number of rows and refuses more than 2^24 of them. Ten classes,
the rarest 1% of the rows. Medians over repetitions, in each of which every method draws in turn, in
a random order, ours a hundred times in a row: a single draw right after a multinomial over all rows
would measure how that emptied the processor's caches. One thread.
Setting up is not counted: the sampler's and multinomial's weights are made once per training set.
"""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import results
import torch

from agra import ComparisonSampler, TrainSet

SIZE, CLASSES, DRAWS = 128, 10, 100
OURS = "agra"
ROWS = 10**4, 10**5, 10**6, 10**7


def draw_often(sampler: ComparisonSampler) -> None:
    for _ in range(DRAWS):
        sampler.draw_rows(SIZE)


def methods(rows: int) -> dict[str, Callable[[], object]]:
    """Ways to draw, by name."""
    shares = torch.tensor([0.01, 0.03] + [0.12] * (CLASSES - 2))
    labels = torch.multinomial(shares, rows, replacement=True)
    train_set = TrainSet((torch.zeros(rows, 1), labels))
    weights = labels.bincount(minlength=CLASSES).float().reciprocal()[labels]
    found: dict[str, Callable[[], object]] = {}
    for kind in ("uniform", "inverse-frequency"):
        sampler = ComparisonSampler(train_set, weights=kind)
        given = torch.ones(rows) if kind == "uniform" else weights
        found[f"{OURS}, {kind}"] = partial(draw_often, sampler)
        found[f"torch.multinomial, {kind}"] = partial(torch.multinomial, given, SIZE)
    return found


def measure(rows: int, repetitions: int, order: random.Random) -> list[dict[str, object]]:
    """One entry of the result per method."""
    draws = methods(rows)
    for draw in draws.values():
        draw()
    found = []
    for method, seconds in results.interleaved(draws, repetitions, order).items():
        draws_each = DRAWS if method.startswith(OURS) else 1
        low, middle, high = results.quartiles([time / draws_each for time in seconds])
        found.append({"method": method, "rows": rows, "seconds": middle, "quartiles": (low, high)})
    return found


def show(entries: list[dict[str, object]], *, markdown: bool) -> None:
    """Print microseconds, one line per method."""
    lines: dict[str, list[str]] = {}
    for entry in entries:
        figure = f"{1e6 * float(entry['seconds']):,.0f}"
        lines.setdefault(str(entry["method"]), []).append(figure)
    headers = ["microseconds per draw", *(f"{rows:.0e}".replace("e+0", "e") for rows in ROWS)]
    results.show(headers, [[[name, *row] for name, row in lines.items()]], markdown=markdown)


@click.command(context_settings={"show_default": True})
@click.option("--repetitions", type=click.IntRange(min=1), default=31)
@click.option("--seed", default=0, help="Of the labels, the draws and the order of the methods.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "draw_cost.json",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(*, repetitions: int, seed: int, output: Path, markdown: bool) -> None:
    """Measure what a comparison draw costs, write it down and show it."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    order = random.Random(seed)
    entries = [entry for rows in ROWS for entry in measure(rows, repetitions, order)]
    result = results.environment(("torch", "numpy"))
    result |= {"seed": seed, "repetitions": repetitions, "size": SIZE, "rows": entries}
    results.write(output, result)
    show(entries, markdown=markdown)


if __name__ == "__main__":
    main()

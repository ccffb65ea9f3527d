"""What a judged step costs beside a plain training step of the same model and batch.

    python benchmarks/step_cost.py [--markdown]

**Time** is a ratio: the method's step over the plain step of the same repetition, and of these the
median over all repetitions. Within a repetition every method runs once, in a random order; those
with every sample's gradient in memory take part in one repetition of five. One thread, float32, no
dropout and no batch norm, SGD with momentum. A judged step draws its comparison batch (as large as
the update batch), judges, writes the ledger and learns.

**Bound** is arithmetic alone. A forward pass is 1, a backward pass 2 (one half for what a layer
passes on, one for its weights), a plain step 3. Every judged step pays 3 for the comparison
gradient and 3 for its own update. Perturbed adds one forward pass: 7/3. Forward mode adds two
products per layer (weights times tangent, comparison gradient times input): 8/3. Ghost adds what
layers pass on backward, and comparison gradient times input: 8/3 too; norms come on top. That is
for many equal layers. A first layer passes nothing back: counted layer by layer, the MLP here has
2.39 for perturbed, and 2.61 for forward and ghost.

The C library is told to keep memory that torch gives back (``--no-keep-memory`` leaves it alone):
getting it from the system again costs more than computing in some virtual machines, and falls on
whichever method happens to cross a threshold of malloc's.

**Memory** is a ratio of peaks: the most bytes of CPU tensors alive at any moment of one step.
Counted are the parameters, the optimizer's state and the update batch, which are there when a step
begins, and everything that torch's allocator hands out and takes back from there on, as its
profiler reports it, over two steps: so the ``.grad`` that the first leaves behind counts in the
second until it is freed. Not counted are the training set, the ledger, Python objects, and scratch
space that oneDNN or BLAS take from the system themselves.

**Peers** do the same by hand with every sample's gradient in memory: once by
``torch.func.vmap(grad(...))``, once by Opacus. As cross-entropy is a mean over samples, they get
their update for free, as the mean of the kept gradients, and need no second pass for it.
"""

import gc
import random
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import results
import torch
from models import CLASSES, MODELS, ROWS, Problem
from peers import Step, by_opacus, by_vmap
from torch import Tensor
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from agra import Agra

BATCHES = 64, 256


def plain(problem: Problem) -> Step:
    def step(inputs: Tensor, labels: Tensor, ids: Tensor) -> None:
        loss = functional.cross_entropy(problem.model(inputs), labels)
        problem.optimizer.zero_grad()
        loss.backward()
        problem.optimizer.step()

    return step


def judged(engine: str, *, scores: bool = False) -> Callable[[Problem], Step]:
    def make(problem: Problem) -> Step:
        judge = Agra(
            problem.model,
            (problem.inputs, problem.labels),
            criterion="cross-entropy",
            engine=engine,
            scores=scores,
        )
        return lambda *batch: judge.step(problem.optimizer, *batch)

    return make


PLAIN = "plain step"
METHODS: dict[str, tuple[str, Callable[[Problem], Step]]] = {
    PLAIN: ("1", plain),
    "forward": ("8/3", judged("forward")),
    "perturbed": ("7/3", judged("perturbed")),
    "ghost": ("8/3", judged("ghost")),
    "ghost, scores": ("8/3", judged("ghost", scores=True)),
    "per-sample": ("-", judged("per-sample")),
    "peer: vmap": ("-", by_vmap),
    "peer: Opacus": ("-", by_opacus),
}
SLOW = "per-sample", "peer: vmap", "peer: Opacus"  # many times the others: fewer repetitions do
SLOW_EVERY = 5


def peak_bytes(run: Callable[[], object], baseline: int = 0) -> int:
    """The most bytes of CPU tensors alive while it runs, given those alive before.

    It runs twice, as a step is followed by the next: the profiler misses the end of what was
    allocated before it looked, such as gradients that an earlier step left behind.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run()
        run()
    events = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    alive = peak = baseline
    for event in sorted(events, key=lambda e: e.start_ns()):
        alive += event.nbytes()
        peak = max(peak, alive)
    return peak


def check_peak_bytes() -> None:
    """A known case: 4 MB stay from the first run to the second, beside 4 MB and then 8 MB."""
    left = []

    def run() -> None:
        first = torch.empty(10**6)
        second = torch.empty(2 * 10**6)
        left[:] = [first]
        del second
        first.add(1)

    found = peak_bytes(run, baseline=10)
    if found != 16 * 10**6 + 10:
        raise RuntimeError(f"Expected a peak of 16000010 bytes, got {found}.")


def alive_before(problem: Problem, *batch: Tensor) -> int:
    problem.optimizer.zero_grad()  # the profiler would not see these gradients go
    state = [value for entry in problem.optimizer.state.values() for value in entry.values()]
    found = [*problem.model.parameters(), *state, *batch]
    return sum(part.nbytes for part in found if isinstance(part, Tensor))


@dataclass(frozen=True)
class Row:
    """One line of the result."""

    model: str
    batch: int
    method: str
    bound: str
    time_ratio: float
    time_ratio_quartiles: tuple[float, float]
    repetitions: int
    seconds: float
    memory_ratio: float
    peak_bytes: int


def measure(name: str, size: int, repetitions: int, order: random.Random) -> list[Row]:
    model, inputs = MODELS[name]()
    labels = torch.randint(CLASSES, (ROWS,))
    ids = torch.randperm(ROWS)[:size]
    batch = (inputs[ids], labels[ids], ids)
    steps: dict[str, Callable[[], object]] = {}
    peaks = {}
    for method, (_, make) in METHODS.items():
        problem = Problem.of(model, inputs, labels)
        step = make(problem)
        steps[method] = partial(step, *batch)
        if method not in SLOW:
            steps[method]()  # chooses the engine, opens the ledger, fills the caches
        gc.collect()  # or memory from before would end unseen in the middle of the measurement
        peaks[method] = peak_bytes(steps[method], alive_before(problem, *batch))
    seconds = time_steps(steps, repetitions, order)
    rows = []
    for method, (bound, _) in METHODS.items():
        pairs = list(zip(seconds[method], seconds[PLAIN], strict=False))
        low, middle, high = results.quartiles([own / base for own, base in pairs])
        times = (middle, (low, high), len(pairs), results.quartiles(seconds[method])[1])
        peak = peaks[method]
        rows.append(Row(name, size, method, bound, *times, peak / peaks[PLAIN], peak))
    return rows


def time_steps(
    steps: dict[str, Callable[[], object]], repetitions: int, order: random.Random
) -> dict[str, list[float]]:
    """Seconds per method; those of the slow ones pair up with the first of the others."""
    slow_rounds = -(-repetitions // SLOW_EVERY)
    seconds = results.interleaved(steps, slow_rounds, order)
    quick = {name: step for name, step in steps.items() if name not in SLOW}
    for name, more in results.interleaved(quick, repetitions - slow_rounds, order).items():
        seconds[name] += more
    return seconds


def show(rows: list[Row], *, markdown: bool) -> None:
    found = {(row.model, row.method, row.batch): row for row in rows}
    sizes = sorted({row.batch for row in rows})
    sections = []
    for model in dict.fromkeys(row.model for row in rows):
        section = []
        for method, (bound, _) in METHODS.items():
            lines = [found[model, method, size] for size in sizes]
            times = [f"{row.time_ratio:.2f}" for row in lines]
            memory = [f"{row.memory_ratio:.2f}" for row in lines]
            if method == PLAIN:
                times = [f"{1000 * row.seconds:.0f} ms" for row in lines]
                memory = [f"{row.peak_bytes / 1e6:.0f} MB" for row in lines]
            section.append(["" if section else model, method, bound, *times, *memory])
        sections.append(section)
    headers = ["model", "method", "bound", *(f"time {n}" for n in sizes)]
    headers += [f"mem {n}" for n in sizes]
    results.show(headers, sections, words=2, markdown=markdown)


@click.command(context_settings={"show_default": True})
@click.option("--repetitions", type=click.IntRange(min=1), default=11)
@click.option("--seed", default=0, help="Of weights, data and the order of the methods.")
@click.option("--models", default=",".join(MODELS), help="Some of these, with commas.")
@click.option("--batch", type=int, multiple=True, default=BATCHES, help="May be repeated.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "step_cost.json",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--keep-memory/--no-keep-memory", default=True, help="In the C library.")
def main(
    *,
    repetitions: int,
    seed: int,
    models: str,
    batch: tuple[int, ...],
    output: Path,
    markdown: bool,
    keep_memory: bool,
) -> None:
    """Measure what a judged step costs, write it down and show it."""
    names = models.split(",")
    if unknown := set(names) - set(MODELS):
        raise click.BadParameter(f"Expected some of {list(MODELS)}, got {sorted(unknown)}.")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    warnings.simplefilter("ignore")  # Opacus and torch warn about hooks on inputs
    check_peak_bytes()
    kept = keep_memory and results.keep_memory()
    order = random.Random(seed)
    rows = [row for name in names for n in batch for row in measure(name, n, repetitions, order)]
    result: dict[str, Any] = results.environment(("torch", "numpy", "opacus"))
    result |= {"seed": seed, "repetitions": repetitions, "keep_memory": kept}
    result["rows"] = [asdict(row) for row in rows]
    results.write(output, result)
    show(rows, markdown=markdown)


if __name__ == "__main__":
    main()

"""Time and memory of the linear learner as rows and classes grow, and on an endless stream.

    python benchmarks/scale.py [--markdown]

Synthetic CSR rows (float32, 32-bit indices, length about 1): every non-zero has a band of columns
of its own, within which every other one lies where its class points, the rest anywhere; one label
in five is wrong. One epoch at batch size 1,024, judged and plain, beside scikit-learn's
``SGDClassifier(loss="log_loss", max_iter=1, tol=None)``, whose ``n_jobs`` is 1 by default. All have
the same weight decay, 1e-4, which is scikit-learn's default.

Every fit has a process of its own, after a small fit that brings in what is loaded once. **Time**
is that of the whole ``fit``; ratios are those of neighbours in one round, in a random order, and of
these the median. Accuracy is that on fresh rows with true labels. **Memory** is how far the process
grew at the highest during ``fit`` (Linux' ``VmHWM``, set back just before), without X itself. Its
limit: together with X it may come to 1.5 times X and 12 times the weights. One thread.

The stream comes in chunks of 100,000 rows that are made as they are needed, with 10,000 columns, 20
non-zeros and 20 classes; only the time of `partial_fit` counts. Its memory is what the process
holds after a chunk.
"""

import os
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import results
import torch
from processes import alone, begin, memory
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from agra import AgraClassifier

JUDGED, PLAIN, PEER = "judged", "plain", "SGD"
METHODS = JUDGED, PLAIN, PEER
CHUNK, REPORT_EVERY, TEST_ROWS = 100_000, 10, 10_000
NOISE, TELLING = 0.2, 0.5


@dataclass(frozen=True)
class Data:
    """What the synthetic rows are like."""

    rows: int
    columns: int = 100_000
    nonzeros: int = 50
    classes: int = 20
    dtype: str = "float32"

    @property
    def weights_bytes(self) -> int:
        """Of a linear model in single precision."""
        return 4 * self.columns * self.classes


@dataclass(frozen=True)
class Fit:
    """What one fit took, in bytes and seconds."""

    seconds: float
    cpu_seconds: float
    x_bytes: int
    fit_bytes: int
    accuracy: float


@dataclass(frozen=True)
class Row:
    """One method on one data set: medians, and the highest memory of all rounds."""

    data: Data
    method: str
    seconds: float
    cpu_seconds: float
    time_to_peer: float
    cpu_to_peer: float
    x_bytes: int
    fit_bytes: int
    limit_bytes: int
    accuracy: float


@dataclass(frozen=True)
class Stream:
    """What a stream took: seconds in `partial_fit`, and the process after so many rows."""

    resident_bytes: list[tuple[int, int]]
    peak_bytes: int
    seconds: float
    accuracy: float


def chunk(data: Data, rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Some rows, their noisy labels and their true ones."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(data.classes, size=rows, dtype=np.int32)
    wrong = rng.random(rows, dtype=np.float32) < NOISE
    given = (truth + wrong * rng.integers(1, data.classes, rows, dtype=np.int32)) % data.classes
    shape, band = (rows, data.nonzeros), data.columns // data.nonzeros
    columns = rng.integers(band, size=shape, dtype=np.int32)
    telling = rng.random(shape, dtype=np.float32) < TELLING
    own = band // data.classes  # columns of a band in which a class is at home
    columns = np.where(telling, truth[:, None] * own + columns % own, columns)
    columns += np.arange(data.nonzeros, dtype=np.int32) * band
    values = rng.random(shape, dtype=np.float32).astype(data.dtype, copy=False)
    values *= np.sqrt(3 / data.nonzeros)
    starts = np.arange(0, rows * data.nonzeros + 1, data.nonzeros, dtype=np.int32)
    matrix = sparse.csr_matrix((values.ravel(), columns.ravel(), starts), (rows, data.columns))
    return matrix, given, truth


def chunks(data: Data, seed: int) -> Iterator[tuple[Any, Any]]:
    for place, first in enumerate(range(0, data.rows, CHUNK)):
        yield chunk(data, min(CHUNK, data.rows - first), seed + 1 + place)[:2]


def whole(data: Data, seed: int) -> tuple[Any, Any]:
    """All rows, filled in part by part, so that there is one copy only."""
    entries = data.rows * data.nonzeros
    values, columns = np.empty(entries, data.dtype), np.empty(entries, np.int32)
    given, end, row = np.empty(data.rows, np.int64), 0, 0
    for part, labels in chunks(data, seed):
        values[end : end + part.nnz], columns[end : end + part.nnz] = part.data, part.indices
        given[row : row + len(labels)] = labels
        end, row = end + part.nnz, row + len(labels)
    starts = np.arange(0, entries + 1, data.nonzeros, dtype=np.int32)
    return sparse.csr_matrix((values, columns, starts), (data.rows, data.columns)), given


def bytes_of(matrix: Any) -> int:
    return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)


def make(method: str) -> Any:
    if method == PEER:
        return SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)
    settings = {"epochs": 1, "batch_size": 1024, "weight_decay": 1e-4, "random_state": 0}
    return AgraClassifier(**settings, judging=method == JUDGED)


def accuracy(model: Any, data: Data, seed: int) -> float:
    matrix, _, truth = chunk(data, TEST_ROWS, seed)
    return float((model.predict(matrix) == truth).mean())


def warm_up(data: Data, method: str, seed: int) -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)
    model, (matrix, given, _) = make(method), chunk(data, 2048, seed)
    model.fit(matrix, given).predict(matrix)


def measure(data: Data, method: str, seed: int) -> Fit:
    """One fit, in a process of its own."""
    warm_up(replace(data, columns=20 * data.nonzeros * data.classes), method, seed)
    matrix, given = whole(data, seed)
    model, before = make(method), begin()
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(matrix, given)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    grown = memory("VmHWM") - before
    return Fit(seconds, cpu_seconds, bytes_of(matrix), grown, accuracy(model, data, seed))


def measure_stream(data: Data, seed: int) -> Stream:
    warm_up(data, JUDGED, seed)
    model, seconds, rows = make(JUDGED), 0.0, 0
    found: list[tuple[int, int]] = []  # rows so far, and bytes of the process
    begin()
    for place, (matrix, given) in enumerate(chunks(data, seed), start=1):
        start = time.perf_counter()
        model.partial_fit(matrix, given, classes=range(data.classes))
        seconds += time.perf_counter() - start
        rows += len(given)
        if place % REPORT_EVERY == 0 or rows == data.rows:
            found.append((rows, memory("VmRSS")))
    return Stream(found, memory("VmHWM"), seconds, accuracy(model, data, seed))


def compare(data: Data, rounds: int, seed: int, order: random.Random) -> list[Row]:
    """All methods on one data set."""
    fits: dict[str, list[Fit]] = {method: [] for method in METHODS}
    names = list(METHODS)
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            fits[name].append(alone(measure, data, name, seed))
    rows, x_bytes = [], fits[PEER][0].x_bytes
    for name, found in fits.items():
        pairs = list(zip(found, fits[PEER], strict=True))
        rows.append(
            Row(
                data,
                name,
                median(fit.seconds for fit in found),
                median(fit.cpu_seconds for fit in found),
                median(own.seconds / peer.seconds for own, peer in pairs),
                median(own.cpu_seconds / peer.cpu_seconds for own, peer in pairs),
                x_bytes,
                max(fit.fit_bytes for fit in found),
                x_bytes // 2 + 12 * data.weights_bytes,
                found[0].accuracy,
            )
        )
    return rows


def show(rows: list[Row], stream: Stream | None, *, markdown: bool) -> None:
    headers = ["rows, classes", "method", "s", "CPU", "/ SGD", "X MB", "fit", "limit", "acc."]
    sections: list[list[list[str]]] = []
    for row in rows:
        name = f"{row.data.rows:.0e}, {row.data.classes}".replace("e+0", "e")
        name += ", f64" if row.data.dtype == "float64" else ""
        times = [f"{row.seconds:.2f}", f"{row.cpu_seconds:.2f}", f"{row.time_to_peer:.2f}"]
        sizes = [f"{size / 1e6:.0f}" for size in (row.x_bytes, row.fit_bytes, row.limit_bytes)]
        if row.method == METHODS[0]:
            sections.append([])
        sections[-1].append([name, row.method, *times, *sizes, f"{row.accuracy:.3f}"])
    results.show(headers, sections, words=2, markdown=markdown)
    if stream is not None:
        table = [[f"{count:,}", f"{size / 1e6:.0f}"] for count, size in stream.resident_bytes]
        results.show(["rows of the stream", "process, MB"], [table], markdown=markdown)
        print(f"{stream.seconds:.1f} s in partial_fit, accuracy {stream.accuracy:.3f}")


@click.command(context_settings={"show_default": True})
@click.option("--rows", type=int, multiple=True, default=(10**4, 10**5, 10**6))
@click.option("--classes", type=int, multiple=True, default=(2, 200), help="At 100,000 rows.")
@click.option("--rounds", type=click.IntRange(min=1), default=3)
@click.option("--stream-rows", type=click.IntRange(min=0), default=10**7, help="0 for none.")
@click.option("--seed", default=0, help="Of the data and the order of the methods.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).parent / "results" / "scale.json",
)
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def main(
    *,
    rows: tuple[int, ...],
    classes: tuple[int, ...],
    rounds: int,
    stream_rows: int,
    seed: int,
    output: Path,
    markdown: bool,
) -> None:
    """Measure time and memory as data grow, write them down and show them."""
    torch.set_num_threads(1)
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    order = random.Random(seed)
    sets = [Data(count) for count in rows]
    sets += [replace(sets[-1], dtype="float64")] if sets else []
    sets += [Data(10**5, classes=count) for count in classes]
    found = [row for data in sets for row in compare(data, rounds, seed, order)]
    stream = None
    if stream_rows:
        stream = alone(measure_stream, Data(stream_rows, 10_000, 20), seed)
    result = results.environment(("torch", "numpy", "scipy", "scikit-learn"))
    result |= {"seed": seed, "rounds": rounds, "rows": [asdict(row) for row in found]}
    result["stream"] = None if stream is None else asdict(stream)
    results.write(output, result)
    show(found, stream, markdown=markdown)


if __name__ == "__main__":
    main()

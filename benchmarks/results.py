"""What the benchmarks share: interleaved timing, and result files that say where they come from."""

import contextlib
import ctypes
import json
import os
import platform
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import agra

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h


def interleaved(
    methods: Mapping[str, Callable[[], object]], repetitions: int, order: random.Random
) -> dict[str, list[float]]:
    """Seconds of every method in every repetition.

    All methods run once per repetition, in an order drawn anew, so that a noisy neighbour or a
    warm cache favours none of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    names = list(methods)
    for _ in range(repetitions):
        order.shuffle(names)
        for name in names:
            start = time.perf_counter()
            methods[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def environment(packages: tuple[str, ...]) -> dict[str, Any]:
    """The command and the machine behind a result."""
    script, *options = sys.argv
    return {
        "command": shlex.join(["python", f"benchmarks/{Path(script).name}", *options]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "threads": torch.get_num_threads(),
        "versions": {
            "python": platform.python_version(),
            "agra": agra.__version__,
            **{name: version(name) for name in packages},
        },
    }


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def keep_memory() -> bool:
    """Let glibc keep freed memory instead of giving it back; whether it could be told."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        never_trim = mallopt(_M_TRIM_THRESHOLD, -1)
        return bool(never_trim and mallopt(_M_MMAP_MAX, 0))
    return False


def write(path: Path, result: dict[str, Any]) -> None:
    """The whole result, or the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        draft.write_text(json.dumps(result, indent=1) + "\n")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def show(
    headers: list[str], sections: list[list[list[str]]], words: int = 1, *, markdown: bool
) -> None:
    """Print a table: the first columns are words, the others figures."""
    if markdown:
        print("| " + " | ".join(headers) + " |")
        print("|" + " --- |" * words + " ---: |" * (len(headers) - words))
        for row in (row for section in sections for row in section):
            print("| " + " | ".join(row) + " |")
        return
    table = Table(*headers)
    for place, column in enumerate(table.columns):
        column.justify, column.no_wrap = ("left" if place < words else "right"), True
    for section in sections:
        for row in section:
            table.add_row(*row, end_section=row is section[-1])
    Console(width=80).print(table)

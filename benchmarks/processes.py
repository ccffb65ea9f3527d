"""Work in a process of its own, and the memory that it takes (Linux)."""

import ctypes
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def memory(name: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at the highest."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def begin() -> int:
    """Give back what is free, forget earlier peaks; bytes of the process."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def alone(function: Any, *args: Any) -> Any:
    """Call in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args).result()

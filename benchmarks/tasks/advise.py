"""Programs to check the advice on: the kernels, and programs that hold memory in different ways."""

from __future__ import annotations

import importlib
import time

from benchmarks.kernels import NAMES as KERNELS
from benchmarks.tasks.programs import PROGRAMS

NAMES = (*KERNELS, *PROGRAMS)


def run(name: str) -> None:
    """Run one program from beginning to end."""
    if name in PROGRAMS:
        PROGRAMS[name]()
    else:
        importlib.import_module(f"benchmarks.kernels.{name}").run()


def measure(name: str) -> dict[str, float]:
    """Return seconds and processor seconds after the imports, first touch included."""
    if name in KERNELS:
        importlib.import_module(f"benchmarks.kernels.{name}")
    start, used = time.perf_counter(), time.process_time()
    run(name)
    return {"seconds": time.perf_counter() - start, "processor": time.process_time() - used}

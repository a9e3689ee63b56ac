"""Programs to check the advice on: the kernels, programs that hold memory in different ways, and whole ones."""

from __future__ import annotations

import importlib
import time

from benchmarks.kernels import NAMES as KERNELS
from benchmarks.programs import NAMES as WHOLE
from benchmarks.tasks.programs import PROGRAMS

#: The module of each program that is not one of the small ones above.
MODULES = {
    **{name: f"benchmarks.kernels.{name}" for name in KERNELS},
    **{name: f"benchmarks.programs.{name}" for name in WHOLE},
}
NAMES = (*KERNELS, *PROGRAMS, *WHOLE)


def run(name: str) -> None:
    """Run one program from beginning to end."""
    if name in PROGRAMS:
        PROGRAMS[name]()
    else:
        importlib.import_module(MODULES[name]).run()


def measure(name: str) -> dict[str, float]:
    """Return seconds and processor seconds after the imports, first touch included."""
    if name in MODULES:
        importlib.import_module(MODULES[name])
    start, used = time.perf_counter(), time.process_time()
    run(name)
    return {"seconds": time.perf_counter() - start, "processor": time.process_time() - used}

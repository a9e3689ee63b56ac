"""Record the trace of a whole program."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from firsttouch import _firsttouch


def record(run: Callable[[], object], file: str) -> None:
    """Call a function, and write a trace of its large and small blocks."""
    _firsttouch.trace_begin(file, [])
    run()
    _firsttouch.trace_end([])


def measure(program: str, file: str) -> dict[str, float]:
    """Record one of the programs."""
    record(importlib.import_module(f"benchmarks.programs.{program}").run, file)
    return {}

"""One kernel from beginning to end."""

from __future__ import annotations

import importlib
import time

from firsttouch._internal.process_memory import peak, reset_peak, resident


def measure(kernel: str) -> dict[str, float]:
    """Return the seconds after the imports, first touch included; the result; and the peak resident memory."""
    run = importlib.import_module(f"benchmarks.kernels.{kernel}").run
    before = resident()
    reset_peak()
    start = time.perf_counter()
    result = run()
    return {"seconds": time.perf_counter() - start, "result": result, "resident": peak() - before}

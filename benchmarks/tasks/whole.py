"""One whole program: time, page faults, peak memory, and memory that a pool gave back too early in the second half."""

from __future__ import annotations

import importlib
import resource
import threading
import time

import firsttouch as ft
from firsttouch._internal.process_memory import peak, reset_peak, resident
from firsttouch._internal.reports import Stats

INTERVAL = 0.02


def measure(program: str) -> dict[str, float]:
    """Return seconds, also of the processor, faults and the peak after the imports; for a pool, the fraction of its
    bytes that is faulted in again.
    """
    run = importlib.import_module(f"benchmarks.programs.{program}").run
    before, used = resident(), resource.getrusage(resource.RUSAGE_SELF)
    reset_peak()
    ended = threading.Event()
    seen: list[Stats] = []

    def watch() -> None:
        while not ended.wait(INTERVAL):
            seen.append(ft.stats())

    watcher = threading.Thread(target=watch)
    watcher.start()  # under every contender: it costs all of them the same
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    reply = {
        "seconds": seconds,
        "user": after.ru_utime - used.ru_utime,
        "system": after.ru_stime - used.ru_stime,
        "result": result,
        "faults": float(after.ru_minflt - used.ru_minflt),
        "resident": peak() - before,
    }
    ended.set()
    watcher.join()
    if seen and ft.is_installed():
        middle, last = seen[len(seen) // 2], ft.stats()
        allocated = last.allocated_bytes - middle.allocated_bytes
        reply["again"] = (last.refaulted_bytes - middle.refaulted_bytes) / max(allocated, 1)
    return reply

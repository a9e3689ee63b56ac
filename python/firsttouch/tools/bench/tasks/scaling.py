"""Temporaries in any number of threads: how many evaluations they get through together, and what the kernel takes."""

from __future__ import annotations

import os
import resource
import time
from threading import Barrier, Thread

import numpy as np

from firsttouch.tools.measuring.forked import forked


def evaluate(nbytes: int, seconds: float, together: Barrier, counts: list[int], at: int) -> None:
    """Evaluate for so long, and note how often; all threads begin together."""
    a = np.full(nbytes // 8, 1.5)
    b = np.full(nbytes // 8, 2.5)
    (a * b + a) / (b + 1.0) - a  # what is kept for the next is there
    together.wait()
    turns, end = 0, time.perf_counter() + seconds
    while not turns or time.perf_counter() < end:
        (a * b + a) / (b + 1.0) - a
        turns += 1
    counts[at] = turns
    together.wait()


def one(nbytes: int, threads: int, seconds: float) -> dict[str, float]:
    """Evaluations a second of all threads, and faults, system time and processor time of the process meanwhile."""
    together, counts = Barrier(threads + 1), [0] * threads
    workers = [Thread(target=evaluate, args=(nbytes, seconds, together, counts, at)) for at in range(threads)]
    for worker in workers:
        worker.start()
    together.wait()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    together.wait()
    spent, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    for worker in workers:
        worker.join()
    turns = sum(counts)
    system, user = after.ru_stime - before.ru_stime, after.ru_utime - before.ru_utime
    return {
        "rate": turns / spent,
        "per processor second": turns / max(system + user, 1e-6),
        "faults": (after.ru_minflt - before.ru_minflt) / turns,
        "system": system / max(system + user, 1e-6),
        "switches": (after.ru_nvcsw - before.ru_nvcsw) / turns,
    }


def measure(nbytes: int, threads: list[int], seconds: float) -> dict[str, float]:
    """Every number of threads in a fork of its own: what an allocator keeps depends on what ran before."""
    reply: dict[str, float] = {}
    for count in threads:
        found = forked(lambda count=count: one(nbytes, count, seconds))  # type: ignore[misc]
        reply |= {f"{count} {name}": value for name, value in found.items()}
    return reply


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))

"""`a + b` and the same addition into memory that is already warm, alternating."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median as middle

import numpy as np

from firsttouch.inspection import check_backed

Arrays = tuple["np.ndarray[tuple[int], np.dtype[np.float64]]", ...]

_operands: dict[tuple[int, int], Arrays] = {}
_threads: dict[int, ThreadPoolExecutor] = {}


def operands(nbytes: int) -> Arrays:
    """Return a, b and warm, created once by the thread that uses them."""
    key = (threading.get_ident(), nbytes)
    if key not in _operands:
        count = nbytes // 8
        _operands[key] = (np.full(count, 1.5), np.full(count, 2.5), np.full(count, 0.0))
    return _operands[key]


def pool(threads: int) -> ThreadPoolExecutor:
    """Return threads that live as long as the process."""
    if threads not in _threads:
        _threads[threads] = ThreadPoolExecutor(threads)
    return _threads[threads]


def alternate(nbytes: int, seconds: float) -> dict[str, float]:
    """Return seconds per addition from short loops of `a + b` and of `out=`, alternating."""
    a, b, warm = operands(nbytes)
    add, clock = np.add, time.perf_counter
    loops = range(max(1, (1 << 20) // nbytes))

    def fresh() -> float:
        start = clock()
        for _ in loops:
            result = a + b
            del result
        return clock() - start

    def reused() -> float:
        start = clock()
        for _ in loops:
            add(a, b, out=warm)
        return clock() - start

    fresh()
    times: dict[Callable[[], float], list[float]] = {fresh: [], reused: []}
    turn = 0
    with check_backed(a, b):
        end = clock() + seconds
        while clock() < end or turn < 2:
            for kind in (fresh, reused) if turn % 2 else (reused, fresh):
                times[kind].append(kind() / len(loops))
            turn += 1
    return {"add": middle(times[fresh]), "out": middle(times[reused])}


def throughput(nbytes: int, seconds: float, threads: int) -> dict[str, float]:
    """Return the process's seconds per addition with all cores in use, alternating windows of `a + b` and of `out=`."""
    barrier = threading.Barrier(threads)

    def one() -> tuple[list[int], list[float]]:
        a, b, warm = operands(nbytes)
        add, clock = np.add, time.perf_counter
        counts, spent = [0, 0], [0.0, 0.0]
        np.copyto(warm, a + b)
        for kind in (0, 1, 1, 0):
            barrier.wait()
            start = now = clock()
            while now - start < seconds / 4:
                if kind:
                    add(a, b, out=warm)
                else:
                    result = a + b
                    del result
                counts[kind] += 1
                now = clock()
            spent[kind] += now - start
        return counts, spent

    done = [future.result() for future in [pool(threads).submit(one) for _ in range(threads)]]
    rates = [sum(counts[kind] / spent[kind] for counts, spent in done) for kind in (0, 1)]
    return {"add": 1 / rates[0], "out": 1 / rates[1]}


def measure(nbytes: int, seconds: float, where: str) -> dict[str, float]:
    """Run a worker's round: in the main thread, in a second thread, or in threads on all cores."""
    if where == "main":
        return alternate(nbytes, seconds)
    if where == "second":
        return pool(1).submit(alternate, nbytes, seconds).result()
    return throughput(nbytes, seconds, len(os.sched_getaffinity(0)))

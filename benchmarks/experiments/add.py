"""`a + b` compared with the same addition into warm memory: the cost of allocating the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median as middle

import numpy as np

from benchmarks.measuring import (
    AGAIN,
    EXPRESSIONS,
    QUICK,
    Matrix,
    Plan,
    Samples,
    Section,
    collect,
    fitting,
    judge,
    losses,
    median,
    peers,
)
from firsttouch.inspection import check_backed
from firsttouch.tools.bench.common import name
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, TUNED_GLIBC, Contender, preloaded
from firsttouch.tools.measuring.machine import processors
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


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
    return throughput(nbytes, seconds, processors())


# ---- The experiment


BAR = 1.05
DASK = {"MALLOC_TRIM_THRESHOLD_": "65536"}


def modes() -> list[tuple[str, str, str, Sequence[Contender], float, int]]:
    """Return title, key, place, contenders, seconds per round, and the number of threads that hold operands."""
    cores = processors()
    ours = (FIRSTTOUCH, AGAIN)
    all_of_them = (*ours, NUMPY, *peers())
    few = (*ours, NUMPY, TUNED_GLIBC)
    dask = [replace(contender, environment={**contender.environment, **DASK}) for contender in (*ours, NUMPY)]
    return [
        ("In the main thread", "main", "main", all_of_them, 0.02, 1),
        ("In a second thread", "second", "second", few, 0.02, 1),
        (f"Throughput, {cores} threads on {cores} cores", "throughput", "all", few, 0.15, cores),
        ("With MALLOC_TRIM_THRESHOLD_=65536, main thread", "trim", "main", dask, 0.02, 1),
    ]


def overhead(samples: Samples, contender: Contender) -> Matrix:
    """Return per-round ratios of `a + b` to `out=` inside one process."""
    return samples.column(contender, "add") / samples.column(contender, "out")


def run(quick: bool) -> Section:
    """Measure every mode at every size."""
    section = Section(
        "add",
        "a + b compared with out= on warm memory",
        f"`a + b` on float64, its result freed at once, costs at most {BAR} times "
        "`np.add(a, b, out=warm)`. Cells are that ratio inside one process; operands and `warm` come from "
        "the allocator under test.",
    )
    for title, key, where, contenders, seconds, threads in modes():
        cells: dict[str, Matrix] = {}
        beaten: dict[tuple[str, str], Matrix] = {}
        table = Table(f"**{title}**", ["array", *(contender.name for contender in contenders), "out="])
        sizes, notes = fitting(QUICK if quick else EXPRESSIONS, 4 * threads * len(contenders))
        for size in sizes:
            arguments = {"nbytes": size, "seconds": seconds, "where": where}
            call = Call("benchmarks.experiments.add", "measure", arguments)
            samples = collect(contenders, call, Plan.steady(quick), 4 * threads * size)
            section.raw[f"{key} {size}"] = samples.replies
            cells[name(size)] = overhead(samples, FIRSTTOUCH)
            for peer in contenders[2:]:
                ratios = samples.ratio(FIRSTTOUCH, peer, "add")
                beaten[peer.name, f"{name(size)}, {key}"] = ratios
            row = [str(median(overhead(samples, contender))) for contender in contenders]
            out = float(median(samples.column(FIRSTTOUCH, "out")).value)
            table.rows.append([name(size), *row, f"{out * 1e6:,.1f} us"])
        section.tables.append(table)
        section.verdicts.append(judge(f"{title}: at most {BAR} times `out=`", BAR, cells))
        section.notes += [*notes, *(f"{title}: {loss}" for loss in losses("firsttouch", beaten))]
    section.notes += [f"{absent} is absent on this machine." for absent in preloaded()[1]]
    section.notes.append("Peers are compared by the time of `a + b` itself.")
    return section

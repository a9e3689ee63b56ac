"""Whole programs with arrays of many sizes: time, page faults, peak memory, and memory given back too early."""

from __future__ import annotations

import importlib
import resource
import threading
import time
from collections.abc import Callable, Mapping

import numpy as np

import firsttouch as ft
from benchmarks.measuring import (
    AGAIN,
    FIRSTTOUCH,
    NUMPY,
    Column,
    Samples,
    Section,
    Verdict,
    both_axes,
    collect,
    geometric_mean,
    judge_times,
    median,
    peers,
)
from benchmarks.process_memory import peak, reset_peak, resident, status
from benchmarks.programs import NAMES
from firsttouch.process import Stats
from firsttouch.tools.bench.common import MIB
from firsttouch.tools.measuring.contenders import HUGE_GLIBC
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


INTERVAL = 0.02


def imported(program: str) -> Callable[[], float | None]:
    """Return the function of a program: `run` of a module, or another behind a colon."""
    module, _, function = program.partition(":")
    found: Callable[[], float | None] = getattr(importlib.import_module(module), function or "run")
    return found


def measure(program: str, wait: float = 0.0) -> dict[str, float]:
    """Return seconds, also of the processor, faults, the memory of the process and how its peak grew since the imports;
    for a pool, the fraction of its bytes that is faulted in again. What is left is what is resident after a while.
    """
    run = imported(program)
    before, used = resident(), resource.getrusage(resource.RUSAGE_SELF)
    reset_peak()
    ended = threading.Event()
    seen: list[Stats] = []
    sizes = [before]

    def watch() -> None:
        while not ended.wait(INTERVAL):
            seen.append(ft.stats())
            sizes.append(status("VmRSS"))

    watcher = threading.Thread(target=watch)
    watcher.start()  # under every contender: it costs all of them the same
    start = time.perf_counter()
    result = run() or 0.0  # those of everyday return nothing
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    reply = {
        "seconds": seconds,
        "processor": after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime,
        "result": result,
        "faults": float(after.ru_minflt - used.ru_minflt),
        "resident": peak() - before,
        "peak": peak(),
        "mib_seconds": float(np.mean(sizes)) / MIB * seconds,
    }
    ended.set()
    watcher.join()
    if wait:
        time.sleep(wait)
        reply["left"] = resident()
    reply["again"] = 0.0
    if seen and ft.is_installed():
        middle, last = seen[len(seen) // 2], ft.stats()
        allocated = last.allocated_bytes - middle.allocated_bytes
        reply["again"] = (last.refaulted_bytes - middle.refaulted_bytes) / max(allocated, 1)
    return reply


# ---- The experiment


FOOTPRINT = 128 << 20
#: Every program of a file, by its name.
WHOLE = {name: f"benchmarks.programs.{name}" for name in NAMES}
WAIT = 2.0
PEAK, PEAK_EACH, AGAIN_MOST = 1.10, 1.35, 0.05


def same_results(samples: Samples, program: str) -> None:
    """Check that the allocators do not change the results."""
    results = np.concatenate([samples.column(name, "result").ravel() for name in samples.replies])
    if not np.allclose(results, results[0], rtol=1e-9):
        raise RuntimeError(f"{program}: contenders disagree: {sorted(set(results.tolist()))}")


def run(quick: bool) -> Section:
    """Measure every program under every contender."""
    section = Section(
        "programs",
        "Whole programs with arrays of many sizes",
        "at most the best peer's time; peak memory at most 1.10 of NumPy's in the geometric mean and 1.35 for each; at "
        "most 5 % of what is allocated in the second half of a program was given back and is faulted in again. Cells "
        "are firsttouch's time after the imports divided by the column's, first touch included.",
    )
    programs = {name: WHOLE[name] for name in NAMES[-2:]} if quick else WHOLE
    return compared(section, programs, 2 if quick else 5, quick)


def compared(section: Section, programs: Mapping[str, str], rounds: int, quick: bool) -> Section:
    """Measure programs, by name and where they are, under every contender, and judge."""
    rivals = [HUGE_GLIBC] if quick else [HUGE_GLIBC, *peers()]
    names = [rival.name for rival in rivals]
    memory = Table("**Memory**", ["program", "faults", "NumPy's", "peak / NumPy's", "again"])
    peaks: dict[str, Column] = {}
    again: dict[str, float] = {}
    costs: dict[str, dict[str, dict[str, Column]]] = {}
    times: dict[str, dict[str, Column]] = {}
    for name, program in programs.items():
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        samples = collect([FIRSTTOUCH, NUMPY, AGAIN, *rivals], measure, rounds, FOOTPRINT, program=program)
        same_results(samples, name)
        section.raw[name] = samples.replies
        rested = collect([FIRSTTOUCH, NUMPY, *rivals], measure, 1, FOOTPRINT, program=program, wait=WAIT)
        section.raw[f"{name}, at rest"] = rested.replies
        costs[name] = {
            who: {
                **{axis: samples.column(who, axis) for axis in ("seconds", "mib_seconds", "peak")},
                "left": rested.column(who, "left"),
            }
            for who in rested.replies
        }
        times[name] = samples.columns("seconds")
        peaks[name] = samples.ratio(FIRSTTOUCH, NUMPY, "resident")
        again[name] = median(samples.column(FIRSTTOUCH, "again")).value
        faults = [f"{median(samples.column(who, 'faults')).value:,.0f}" for who in (FIRSTTOUCH, NUMPY)]
        memory.rows.append([name, *faults, str(median(peaks[name])), f"{again[name]:.1%}"])
    judge_times(section, times, (FIRSTTOUCH, NUMPY, AGAIN), rivals)
    section.tables += [memory, both_axes(FIRSTTOUCH.name, [NUMPY.name, *names], costs)]
    mean, most = geometric_mean(list(peaks.values())), max(median(cell).value for cell in peaks.values())
    bar, figure = f"peak at most {PEAK:.2f} of NumPy's, each at most {PEAK_EACH}", f"mean {mean}, most {most:.2f}"
    section.verdicts.append(Verdict(bar, figure, "passed" if mean.high <= PEAK and most <= PEAK_EACH else "failed"))
    worst = max(again.values())
    outcome = "passed" if worst <= AGAIN_MOST else "failed"
    section.verdicts.append(Verdict(f"at most {AGAIN_MOST:.0%} faulted in again", f"{worst:.1%}", outcome))
    return section

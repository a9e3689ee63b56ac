"""Whole programs with arrays of many sizes: time, page faults, peak memory, and memory given back too early."""

from __future__ import annotations

import importlib
import resource
import threading
import time

import firsttouch as ft
from benchmarks.experiments.kernels import same_results
from benchmarks.measuring import (
    AGAIN,
    Matrix,
    Plan,
    Section,
    Verdict,
    against_best,
    collect,
    geometric_mean,
    judge,
    losses,
    median,
    peers,
)
from benchmarks.programs import NAMES
from firsttouch._internal.process_memory import peak, reset_peak, resident
from firsttouch._internal.reports import Stats
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, HUGE_GLIBC, NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


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


# ---- The experiment


FOOTPRINT = 128 << 20
PEAK, PEAK_EACH, AGAIN_MOST = 1.10, 1.35, 0.05


def run(quick: bool) -> Section:
    """Measure every program under every contender."""
    rivals = [HUGE_GLIBC] if quick else [HUGE_GLIBC, *peers()]
    others = [NUMPY, AGAIN, *rivals]
    section = Section(
        "programs",
        "Whole programs with arrays of many sizes",
        "at most the best peer's time; peak memory at most 1.10 of NumPy's in the geometric mean and 1.35 for each; at "
        "most 5 % of what is allocated in the second half of a program was given back and is faulted in again. Cells "
        "are firsttouch's time after the imports divided by the column's, first touch included.",
    )
    columns = ["program", "NumPy's time", *(other.name for other in others), "best peer"]
    table, memory = (
        Table("**Time**", columns),
        Table("**Memory**", ["program", "faults", "NumPy's", "peak / NumPy's", "again"]),
    )
    cells: dict[str, dict[str, Matrix]] = {other.name: {} for other in others}
    best: dict[str, Matrix] = {}
    peaks: dict[str, Matrix] = {}
    again: dict[str, float] = {}
    for program in NAMES[-2:] if quick else NAMES:
        call = Call("benchmarks.experiments.programs", "measure", {"program": program})
        samples = collect([FIRSTTOUCH, *others], call, Plan(2 if quick else 5, 1), FOOTPRINT)
        same_results(samples, program)
        section.raw[program] = samples.replies
        for other in others:
            cells[other.name][program] = samples.ratio(FIRSTTOUCH, other, "seconds")
        times = {rival.name: samples.column(rival, "seconds") for rival in rivals}
        best[program], _ = against_best(samples.column(FIRSTTOUCH, "seconds"), times)
        row = [str(median(cells[other.name][program])) for other in others]
        table.rows.append(
            [program, f"{median(samples.column(NUMPY, 'seconds')).value:,.2f} s", *row, str(median(best[program]))]
        )
        peaks[program] = samples.ratio(FIRSTTOUCH, NUMPY, "resident")
        again[program] = median(samples.column(FIRSTTOUCH, "again")).value
        faults = [f"{median(samples.column(who, 'faults')).value:,.0f}" for who in (FIRSTTOUCH, NUMPY)]
        memory.rows.append([program, *faults, str(median(peaks[program])), f"{again[program]:.1%}"])
    section.tables += [table, memory]
    section.verdicts.append(judge("at most the best peer's time", 1.0, best))
    mean, most = geometric_mean(list(peaks.values())), max(median(cell).value for cell in peaks.values())
    outcome = "passed" if mean.high <= PEAK and most <= PEAK_EACH else "failed"
    section.verdicts.append(
        Verdict(
            f"peak at most {PEAK:.2f} of NumPy's, each at most {PEAK_EACH}", f"mean {mean}, most {most:.2f}", outcome
        )
    )
    worst = max(again.values())
    section.verdicts.append(
        Verdict(
            f"at most {AGAIN_MOST:.0%} faulted in again", f"{worst:.1%}", "passed" if worst <= AGAIN_MOST else "failed"
        )
    )
    beaten = {(rival.name, name): cell for rival in rivals for name, cell in cells[rival.name].items()}
    section.notes += losses("firsttouch", beaten)
    return section

"""Arrays that are made once and kept, of sizes below and above those that come from huge pages."""

from __future__ import annotations

import resource
import time

import numpy as np

from benchmarks.measuring import AGAIN, FIRSTTOUCH, NUMPY, Column, Section, collect, judge, judge_times, median, peers
from firsttouch.tools.measuring.contenders import HUGE_GLIBC
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


TOTAL = 256 << 20


def measure(low: int, high: int) -> dict[str, float]:
    """Return the processor time, page faults and peak of arrays of `low` to `high` bytes, 256 MiB together."""
    sizes = np.random.default_rng(1).integers(low, high, size=2 * TOTAL // (low + high)).tolist()
    kept = []
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    for size in sizes:
        array = np.empty(size, np.uint8)
        array.fill(1)
        kept.append(array)
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {"seconds": seconds, "faults": after.ru_minflt - before.ru_minflt, "peak": after.ru_maxrss << 10}


# ---- The experiment


KIB = 1 << 10
SIZES = ((20, 64), (33, 127), (128, 256), (200, 500), (600, 1000), (2000, 8000))


def run(quick: bool) -> Section:
    """Measure each range of sizes under every contender."""
    rivals = [HUGE_GLIBC] if quick else [HUGE_GLIBC, *peers()]
    section = Section(
        "kept",
        "Arrays that are made once and kept",
        "at most the best peer's processor time, and at most 1.05 times NumPy's peak. Cells are firsttouch's time "
        "divided by the column's; 256 MiB are made and written, array by array.",
    )
    memory = Table("**Memory**", ["KiB of an array", "faults", "NumPy's", "peak / NumPy's"])
    times: dict[str, dict[str, Column]] = {}
    peaks: dict[str, Column] = {}
    for low, high in SIZES[-2:] if quick else SIZES:
        name = f"{low} to {high} KiB"
        everyone, bounds = [FIRSTTOUCH, NUMPY, AGAIN, *rivals], {"low": low * KIB, "high": high * KIB}
        samples = collect(everyone, measure, 2 if quick else 9, 2 * TOTAL, **bounds)
        section.raw[name] = samples.replies
        times[name], peaks[name] = samples.columns("seconds"), samples.ratio(FIRSTTOUCH, NUMPY, "peak")
        faults = [f"{median(samples.column(who, 'faults')).value:,.0f}" for who in (FIRSTTOUCH, NUMPY)]
        memory.rows.append([name, *faults, str(median(peaks[name]))])
    judge_times(section, times, (FIRSTTOUCH, NUMPY, AGAIN), rivals, "Processor time")
    section.tables.append(memory)
    section.verdicts.append(judge("at most 1.05 times NumPy's peak", 1.05, peaks))
    return section

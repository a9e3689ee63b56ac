"""Prefault against the best of a small C program, and `zeros` with a full write against NumPy's."""

from __future__ import annotations

import os

from benchmarks.tasks.prefault import WAYS
from firsttouch.measuring.contenders import NUMPY
from firsttouch.measuring.report import Section, Table
from firsttouch.measuring.rounds import Call, Plan, collect
from firsttouch.measuring.sizes import MIB, fitting, name
from firsttouch.measuring.statistics import Matrix, against_best, judge, median

SIZES = (512 * MIB, 4096 * MIB)
WRITTEN = (64 * MIB, 256 * MIB, 1024 * MIB)


def run(quick: bool) -> Section:
    """Every size, on base and on huge pages, by one thread and by all."""
    section = Section(
        "prefault",
        "Prefault",
        "pages made real at 0.9 times the best rate of a small C program on the same pages with as many threads; "
        "zeros on populated huge pages and a full write in at most 0.6 times NumPy's time. Cells are our time "
        "divided by the column's.",
    )
    _prefault(section, quick)
    _write(section, quick)
    return section


def _prefault(section: Section, quick: bool) -> None:
    table = Table("**Making pages real**", ["memory", "pages", "threads", "rate", *WAYS, "the best"])
    sizes, notes = fitting((64 * MIB,) if quick else SIZES, 1)
    section.notes += notes
    processors = len(os.sched_getaffinity(0))
    best: dict[str, Matrix] = {}
    for size in sizes:
        for huge in (False, True):
            for threads in sorted({1, processors}):
                arguments = {"nbytes": size, "huge": huge, "threads": threads}
                call = Call("benchmarks.tasks.prefault", "measure", arguments)
                samples = collect([NUMPY], call, Plan.steady(quick), size)
                ours = samples.column(NUMPY, "ours")
                peers = {way: samples.column(NUMPY, way) for way in WAYS}
                label = f"{name(size)}, {'thp' if huge else 'base'}, {threads}"
                section.raw[label] = samples.replies
                best[label], chosen = against_best(ours, peers)
                rate = f"{size / median(ours).value / 1e9:.1f} GB/s"
                cells = [str(median(ours / peers[way])) for way in WAYS]
                row = [name(size), "thp" if huge else "base", str(threads), rate, *cells]
                table.rows.append([*row, f"{median(best[label])} ({', '.join(sorted(set(chosen)))})"])
    section.tables.append(table)
    section.verdicts.append(judge("our time divided by the best way's: at most 1 / 0.9", 1 / 0.9, best))


def _write(section: Section, quick: bool) -> None:
    table = Table("**zeros and a full write**", ["array", "NumPy", "ours", "ratio"])
    cells: dict[str, Matrix] = {}
    for size in fitting((64 * MIB,) if quick else WRITTEN, 1)[0]:
        call = Call("benchmarks.tasks.prefault", "write", {"nbytes": size})
        samples = collect([NUMPY], call, Plan.steady(quick), size)
        section.raw[f"write {size}"] = samples.replies
        cells[name(size)] = samples.column(NUMPY, "ours") / samples.column(NUMPY, "numpy")
        times = [f"{median(samples.column(NUMPY, who)).value * 1e3:,.1f} ms" for who in ("numpy", "ours")]
        table.rows.append([name(size), *times, str(median(cells[name(size)]))])
    section.tables.append(table)
    bar = "`pages(huge='thp', populate=True)`: zeros and a full write at most 0.6 times `np.zeros` and the write"
    section.verdicts.append(judge(bar, 0.6, cells))

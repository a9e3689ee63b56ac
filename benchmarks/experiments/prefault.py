"""Prefault compared with the best of a small C program, and `zeros` with a full write compared with NumPy's."""

from __future__ import annotations

import os

from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.sizes import MIB, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, against_best, judge, median

#: Size in bytes; ways of the C program; generations and rounds.
SIZES = ((512 * MIB, ("slabs", "chunks", "touch"), Plan(3, 5)), (4096 * MIB, ("slabs", "chunks"), Plan(2, 2)))
QUICK = ((64 * MIB, ("slabs", "chunks", "touch"), Plan(2, 2)),)
WRITTEN = (64 * MIB, 256 * MIB, 1024 * MIB)


def run(quick: bool) -> Section:
    """Measure every size, on base and on huge pages, in one thread and in all."""
    section = Section(
        "prefault",
        "Prefault",
        "pages are faulted in at 0.9 times the best rate of a small C program, with the same pages and threads; "
        "zeros on populated huge pages and a full write in at most 0.6 times NumPy's time. Cells are our time "
        "divided by the column's.",
    )
    _prefault(section, quick)
    _write(section, quick)
    return section


def _prefault(section: Section, quick: bool) -> None:
    ways = QUICK[0][1]
    table = Table("**Faulting in pages**", ["memory", "pages", "threads", "rate", *ways, "the best"])
    sizes = QUICK if quick else SIZES
    kept, notes = fitting([size for size, _, _ in sizes], 1)
    section.notes += notes
    processors = len(os.sched_getaffinity(0))
    best: dict[str, Matrix] = {}
    for size, tried, plan in [each for each in sizes if each[0] in kept]:
        for huge, threads in ((False, 1), (True, 1), (True, processors)):
            arguments = {"nbytes": size, "huge": huge, "threads": threads, "ways": tried}
            call = Call("benchmarks.tasks.prefault", "measure", arguments)
            samples = collect([NUMPY], call, plan, size)
            ours = samples.column(NUMPY, "ours")
            peers = {way: samples.column(NUMPY, way) for way in tried}
            label = f"{name(size)}, {'thp' if huge else 'base'}, {threads}"
            section.raw[label] = samples.replies
            best[label], chosen = against_best(ours, peers)
            rate = f"{size / median(ours).value / 1e9:.1f} GB/s"
            cells = [str(median(ours / peers[way])) if way in tried else "" for way in ways]
            row = [name(size), "thp" if huge else "base", str(threads), rate, *cells]
            table.rows.append([*row, f"{median(best[label])} ({', '.join(sorted(set(chosen)))})"])
    section.tables.append(table)
    section.verdicts.append(judge("our time divided by the best way's: at most 1 / 0.9", 1 / 0.9, best))


def _write(section: Section, quick: bool) -> None:
    parts = ("ours", "the C program, populated", "the C program, lazy", "ours, the write alone")
    table = Table("**zeros and a full write, divided by NumPy's time**", ["array", "NumPy", *parts])
    cells: dict[str, Matrix] = {}
    threads = len(os.sched_getaffinity(0))
    for size in fitting((64 * MIB,) if quick else WRITTEN, 1)[0]:
        call = Call("benchmarks.tasks.prefault", "write", {"nbytes": size, "threads": threads})
        samples = collect([NUMPY], call, Plan(2, 2) if quick else Plan(3, 5 if size < WRITTEN[-1] else 3), size)
        section.raw[f"write {size}"] = samples.replies
        numpy = samples.column(NUMPY, "numpy")
        cells[name(size)] = samples.column(NUMPY, "ours") / numpy
        columns = [samples.column(NUMPY, key) / numpy for key in ("ours", "slabs", "lazy", "written")]
        table.rows.append(
            [name(size), f"{median(numpy).value * 1e3:,.1f} ms", *(str(median(each)) for each in columns)]
        )
    section.tables.append(table)
    section.notes.append(
        "NumPy requests huge pages, too, from 4 MiB on. The kernel zeroes each when the write arrives there, so the "
        "write finds it in the cache; pages that were populated before have left the cache, and the write loads them "
        "again. The C program shows what can be gained nevertheless, and the last column what a prefault without any "
        "cost would gain."
    )
    bar = "`pages(huge='thp', populate=True)`: zeros and a full write at most 0.6 times `np.zeros` and the write"
    section.verdicts.append(judge(bar, 0.6, cells))

"""Copies between NUMA nodes, cold and warm.

Mark Kittisopikul's slides on NumaAllocators.jl (JuliaCon 2022; ArrayAllocators.jl, `docs/juliacon_2022`) copy arrays of
1 MiB between two nodes of a Xeon Gold 5220R, four copies in a row, each timed once: b0 from a0 ("Local -> Local,
relatively slow?") took 439 us, b1 from a0 ("Local -> Remote, fastest!") 287 us, b1 from a1 376 us, b0 from a1 455 us.
Nothing had been written to the arrays on the slides. The package's manual has the same figures below four calls of
`fill!`, which took 307 to 418 us each: as long as the copies.

Arrays that were never written have no pages yet, on any node. The first copy faults in the pages of two arrays, the
second and third those of one each, the last none. On a single node such a series took 753, 417, 360 and 27 us. So each
copy is timed twice here: cold, as on the slides, and again once all pages are resident.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from statistics import median as median_of
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch.tools.bench.common import MIB, Cell, Section, Settings, bars, faults, measured, middle, name
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Picture, Table

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
ARRAYS, ROW = 3, 1 * MIB  # as on the slides
COPIES = (("b0", "a0"), ("b1", "a0"), ("b1", "a1"), ("b0", "a1"))  # target and source, in the slides' order
STATE = ("neither written before", "target not written before", "source not written before", "both resident")
WARM = 5


@cache
def memory(node: int) -> tuple[Any, bool]:
    """Return an allocator of small pages on a node, and whether it is bound; unbound pages if that is not permitted."""
    try:
        allocator = ft.numa(node, strict=True)
        allocator.empty(1 << 16)
    except (MemoryError, OSError, ValueError):
        return ft.pages(), False
    return allocator, True


def timed(target: Bytes, source: Bytes) -> tuple[float, int]:
    """Return the seconds and page faults of one copy."""
    before, start = faults(), time.perf_counter()
    np.copyto(target, source)
    took = time.perf_counter() - start
    return took, faults() - before


def misplaced(array: Bytes, node: int) -> int:
    """Return the number of the array's pages that are not on its node."""
    nodes = ft.inspection.pagemap(array).nodes
    return int((nodes != node).sum())


@contextmanager
def on(node: int) -> Iterator[None]:
    """Run this thread on the processors of a node."""
    before = os.sched_getaffinity(0)
    (processors,) = (each.processors for each in ft.placement.topology().nodes if each.number == node)
    os.sched_setaffinity(0, before & set(processors))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def in_a_row(cpu: int, near: int, far: int, nbytes: int) -> dict[str, float]:
    """Time the slides' four copies, each array as new as on the slides; then the same four again."""
    reply: dict[str, float] = {}
    with on(cpu):
        nodes = {"a0": near, "b0": near, "a1": far, "b1": far}
        arrays: dict[str, Bytes] = {each: memory(node)[0].empty(nbytes, np.uint8) for each, node in nodes.items()}
        for when in ("first", "again"):
            for target, source in COPIES:
                took, count = timed(arrays[target], arrays[source])
                reply |= {f"{target} {source} {when}": took, f"{target} {source} {when} faults": count}
            for array in arrays.values():
                array.fill(1)
    return reply


def between(cpu: int, source: int, target: int, nbytes: int) -> dict[str, float]:
    """Time one copy of arrays that were never written, and several once both are resident (the median)."""
    with on(cpu):
        a, b = (memory(node)[0].empty(nbytes, np.uint8) for node in (source, target))
        cold, cold_faults = timed(b, a)
        a.fill(1)
        np.copyto(b, a)
        warm = [timed(b, a) for _ in range(WARM)]
        wrong = misplaced(a, source) + misplaced(b, target)
    seconds, counts = zip(*warm, strict=True)
    bound = memory(source)[1] and memory(target)[1]
    figures = {"cold": cold, "cold faults": cold_faults, "warm": median_of(seconds), "warm faults": sum(counts)}
    return figures | {"bound": bound, "misplaced": wrong}


def run(settings: Settings) -> Section:
    """Measure four copies in a row, then all combinations of nodes."""
    if not hasattr(os, "sched_setaffinity"):
        raise RuntimeError("it needs Linux, where Python keeps a thread on the processors of a node")
    section = Section(
        "numa",
        "Copies between NUMA nodes, cold and warm",
        "how fast is a copy, by the nodes of the processor, the source and the target? *Cold*: arrays that were never "
        "written, as is common in benchmarks of this kind. *Warm*: the same arrays once they are resident. "
        "Small pages (4 KiB on most machines); GB/s are bytes copied, each read once and written once.",
    )
    nodes = ft.placement.topology().nodes
    cpus = [node.number for node in nodes if node.processors]
    memories = [node.number for node in nodes if node.memory] or cpus
    sizes, section.notes = settings.chosen((64 * MIB,), (16 * MIB,), ARRAYS)
    rounds = 3 if settings.quick else 9
    for far in dict.fromkeys((memories[0], memories[-1])):
        arguments = {"cpu": cpus[0], "near": memories[0], "far": far, "nbytes": ROW}
        replies = measured({far: Cell(Call(__name__, "in_a_row", arguments), 8 * ROW)}, rounds, lambda _: None)[far]
        section.raw[f"in a row {far}"] = replies
        add_row(section, memories[0], far, replies)
    for at, size in enumerate(sizes):
        cells = {
            way: Cell(
                Call(__name__, "between", {"cpu": way[0], "source": way[1], "target": way[2], "nbytes": size}), 3 * size
            )
            for way in product(cpus, memories, memories)
        }
        found = measured(cells, rounds, partial(lambda at, done: settings.progress((at + done) / len(sizes)), at))
        section.raw[f"between {size}"] = {str(way): replies for way, replies in found.items()}
        add_matrix(section, size, found)
    return section


def add_row(section: Section, near: int, far: int, replies: list[Any]) -> None:
    """Report the slides' copies on these nodes: table, picture and conclusion."""
    where = f"all on node {near}" if near == far else f"a0 and b0 on node {near}, a1 and b1 on node {far}"
    title = f"Four copies of {name(ROW)} in a row, {where}"
    table = Table(title, ["copy", "before it", "first time", "faults", "again", "faults again"])
    times: dict[str, list[float]] = {"first": [], "again": []}
    for (target, source), state in zip(COPIES, STATE, strict=True):
        row = [f"{target} from {source}", state]
        for when, seconds in times.items():
            seconds.append(middle(replies, f"{target} {source} {when}") * 1e6)
            row += [f"{seconds[-1]:,.0f} us", f"{middle(replies, f'{target} {source} {when} faults'):,.0f}"]
        table.rows.append(row)
    section.tables.append(table)
    groups = [f"{row[0]}\n{row[1]}" for row in table.rows]
    section.pictures.append(
        Picture(f"row-{far}", title, partial(bars, groups=groups, series=times, ylabel="microseconds"))
    )
    first, again = (max(each) / min(each) for each in times.values())
    section.notes.append(
        f"{title}: {first:.0f} times between the slowest and the fastest the first time, {again:.2f} times again."
        " The first time measures page faults, not distance."
    )


def add_matrix(section: Section, size: int, found: dict[tuple[int, int, int], list[Any]]) -> None:
    """Report all combinations of nodes: table, picture, and the difference in words."""
    columns = ["processor's node", "source", "target", "cold", "warm", "cold time / warm", "faults cold", "faults warm"]
    table = Table(f"A copy of {name(size)}, GB/s", columns)
    rates = {when: {way: size / middle(each, when) / 1e9 for way, each in found.items()} for when in ("cold", "warm")}
    cold, warm = rates["cold"], rates["warm"]
    for way, each in found.items():
        counts = (f"{middle(each, f'{when} faults'):,.0f}" for when in rates)
        figures = (f"{cold[way]:.1f}", f"{warm[way]:.1f}", f"{warm[way] / cold[way]:.2f}")
        table.rows.append([*map(str, way), *figures, *counts])
    section.tables.append(table)
    if not all(reply["bound"] for each in found.values() for reply in each):
        section.notes.append("Memory cannot be bound to nodes here: the kernel placed the pages.")
    elif wrong := [way for way, each in found.items() if any(reply["misplaced"] for reply in each)]:
        section.notes.append(f"Pages were not on the requested nodes (processor, source, target): {wrong}.")
    dearest = max(warm[way] / cold[way] for way in found)
    section.notes.append(f"A cold copy of {name(size)} takes up to {dearest:.1f} times as long as a warm one.")
    if len(warm) == 1:
        section.notes.append("This machine has one node, so there is no distance to measure, only first touch.")
        return
    local = max(rate for way, rate in warm.items() if len(set(way)) == 1)
    remote = min(rate for way, rate in warm.items() if len(set(way)) > 1)
    section.notes.append(
        f"Distance costs up to {local / remote:.2f} times, first touch up to {dearest:.2f} times. Warm copies:"
        f" {local:.1f} GB/s on one node, down to {remote:.1f} across nodes."
    )
    groups = [" ".join(map(str, way)) for way in found]
    series = {when: list(each.values()) for when, each in rates.items()}
    title = f"A copy of {name(size)}, by the nodes of processor, source and target"
    section.pictures.append(Picture("matrix", title, partial(bars, groups=groups, series=series, ylabel="GB/s")))

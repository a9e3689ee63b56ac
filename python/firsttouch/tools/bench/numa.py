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
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch.tools.bench.common import MIB, Cell, Section, Settings, bars, faults, middle, name
from firsttouch.tools.measuring.report import Table

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
ARRAYS, SIZES = 4, (1 * MIB,)  # as on the slides
COPIES = (("b0", "a0"), ("b1", "a0"), ("b1", "a1"), ("b0", "a1"))  # target and source, in the slides' order
STATE = ("neither written before", "target not written before", "source not written before", "both resident")


def memory(node: int) -> Any:
    """Return an allocator of small pages on a node; of unbound pages if that is not permitted."""
    try:
        allocator = ft.numa(node, strict=True)
        allocator.empty(1 << 16)
    except (MemoryError, OSError, ValueError):
        return ft.pages()
    return allocator


def timed(target: Bytes, source: Bytes) -> tuple[float, int]:
    """Return the seconds and page faults of one copy."""
    before, start = faults(), time.perf_counter()
    np.copyto(target, source)
    took = time.perf_counter() - start
    return took, faults() - before


@contextmanager
def on(node: int) -> Iterator[None]:
    """Run this thread on the processors of a node."""
    before = os.sched_getaffinity(0)
    (processors,) = (each.processors for each in ft.placement.topology() if each.number == node)
    os.sched_setaffinity(0, before & set(processors))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def in_a_row(cpu: int, near: int, far: int, nbytes: int) -> dict[str, float]:
    """Time the slides' four copies, each array as new as on the slides; then the same four again.

    `misplaced` counts pages that are on other nodes than they should be.
    """
    reply: dict[str, float] = {}
    with on(cpu):
        nodes = {"a0": near, "b0": near, "a1": far, "b1": far}
        arrays: dict[str, Bytes] = {each: memory(node).empty(nbytes, np.uint8) for each, node in nodes.items()}
        for when in ("first", "again"):
            for target, source in COPIES:
                took, count = timed(arrays[target], arrays[source])
                reply |= {f"{target} {source} {when}": took, f"{target} {source} {when} faults": count}
            for array in arrays.values():
                array.fill(1)
        found = {each: ft.inspection.pagemap(array).nodes for each, array in arrays.items()}
    return reply | {"misplaced": sum(int((found[each] != node).sum()) for each, node in nodes.items())}


def run(settings: Settings) -> Section:
    """Measure four copies in a row, on one node, and between the first and the last node that has memory."""
    if not hasattr(os, "sched_setaffinity"):
        raise RuntimeError("it needs Linux, where Python keeps a thread on the processors of a node")
    section = Section("numa", "Copies between NUMA nodes, cold and warm")
    nodes = ft.placement.topology()
    cpus = [node.number for node in nodes if node.processors]
    memories = [node.number for node in nodes if node.memory] or cpus
    near, fars = memories[0], sorted({memories[0], memories[-1]})
    cells = {
        (far, size): Cell(in_a_row, 2 * ARRAYS * size, cpu=cpus[0], near=near, far=far, nbytes=size)
        for far in fars
        for size in settings.chosen(SIZES, SIZES, ARRAYS)
    }
    found = section.measure(cells, 3 if settings.quick else 9, settings)
    for (far, size), replies in found.items():
        where = f"all on node {near}" if near == far else f"a0 and b0 on node {near}, a1 and b1 on node {far}"
        title = f"Four copies of {name(size)} in a row, {where}"
        table = Table(title, ["copy", "before it", "first time", "faults", "again", "faults again"])
        times: dict[str, list[float]] = {"first": [], "again": []}
        for (target, source), state in zip(COPIES, STATE, strict=True):
            row = [f"{target} from {source}", state]
            for when, micros in times.items():
                micros.append(middle(replies, f"{target} {source} {when}") * 1e6)
                row += [f"{micros[-1]:,.0f} us", f"{middle(replies, f'{target} {source} {when} faults'):,.0f}"]
            table.rows.append(row)
        section.tables.append(table)
        groups = [f"{row[0]}\n{row[1]}" for row in table.rows]
        section.pictures.append(bars(title, groups, times, "microseconds"))
        first, again = (max(each) / min(each) for each in times.values())
        section.notes.append(
            f"{title}: {first:.0f} times between the slowest and the fastest the first time, {again:.2f} times again."
            " The first time measures page faults, not distance."
        )
        if any(reply["misplaced"] for reply in replies):
            section.notes.append("Some pages were not on their nodes: the kernel placed them.")
    if len(fars) == 1:
        section.notes.append("This machine has one node, so there is no distance to measure, only first touch.")
    return section

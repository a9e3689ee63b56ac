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
from functools import partial

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import MIB, Section, Settings, name, timed
from firsttouch.tools.measuring.contenders import DEFAULT
from firsttouch.tools.measuring.processes import ask

ARRAYS, SIZES = 4, (1 * MIB,)  # as on the slides
COPIES = (("b0", "a0"), ("b1", "a0"), ("b1", "a1"), ("b0", "a1"))  # target and source, in the slides' order
STATE = ("neither written before", "target not written before", "source not written before", "both resident")
#: What is shown of each copy: the first time, and once all pages are resident.
COLUMNS = {
    "first": units.seconds,
    "first faults": "{:,.0f}".format,
    "again": units.seconds,
    "again faults": "{:,.0f}".format,
}


def in_a_row(cpu: int, near: int, far: int, nbytes: int) -> dict[str, float]:
    """Time the slides' four copies, each array as new as on the slides; then the same four again.

    From here on the thread runs on the processors of a node. `misplaced` counts pages that are on other nodes than they
    should be, as where the system does not permit to choose.
    """
    reply: dict[str, float] = {}
    (processors,) = (node.processors for node in ft.placement.topology() if node.number == cpu)
    os.sched_setaffinity(0, os.sched_getaffinity(0) & set(processors))
    nodes = {"a0": near, "b0": near, "a1": far, "b1": far}
    arrays = {each: ft.numa(node).empty(nbytes, np.uint8) for each, node in nodes.items()}
    for when in ("first", "again"):
        for target, source in COPIES:
            took, count, _ = timed(partial(np.copyto, arrays[target], arrays[source]))
            reply |= {f"{target} {source} {when}": took, f"{target} {source} {when} faults": count}
        for array in arrays.values():
            array.fill(1)
    found = {each: ft.inspection.pagemap(array).nodes for each, array in arrays.items()}
    return reply | {"misplaced": sum(int((found[each] != node).sum()) for each, node in nodes.items())}


def run(settings: Settings) -> Section:
    """Measure four copies in a row, on one node, and between the first and the last node that has memory."""
    if not hasattr(os, "sched_setaffinity"):
        raise RuntimeError("it needs Linux, where Python keeps a thread on the processors of a node")
    section, nodes = Section("Copies between NUMA nodes, cold and warm"), ft.placement.topology()
    cpus = [node.number for node in nodes if node.processors]
    memories = [node.number for node in nodes if node.memory] or cpus
    near, fars = memories[0], sorted({memories[0], memories[-1]})
    here = {"cpu": cpus[0], "near": near}
    cells = {
        (far, name(size)): partial(ask, DEFAULT, in_a_row, 2 * ARRAYS * size, far=far, nbytes=size, **here)
        for far in fars
        for size in settings.chosen(SIZES, SIZES, ARRAYS)
    }
    for (far, size), replies in section.measure(settings, 3 if settings.quick else 9, cells).items():
        where = f"all on node {near}" if near == far else f"a0 and b0 on node {near}, a1 and b1 on node {far}"
        title, of = f"Four copies of {size} in a row, {where}", replies.medians()
        rows = {
            (f"{to} from {source}", state): {column: of[f"{to} {source} {column}"] for column in COLUMNS}
            for (to, source), state in zip(COPIES, STATE, strict=True)
        }
        section.table(title, ["copy", "before it"], rows, COLUMNS)
        times = [[row[when] for row in rows.values()] for when in ("first", "again")]
        first, again = (max(each) / min(each) for each in times)
        section.notes.append(
            f"{title}: {first:.0f} times between the slowest and the fastest the first time, {again:.2f} times again."
            " The first time measures page faults, not distance."
        )
        if any(reply["misplaced"] for reply in replies):
            section.notes.append("Some pages were not on their nodes: the kernel placed them.")
    if len(fars) == 1:
        section.notes.append("This machine has one node, so there is no distance to measure, only first touch.")
    return section

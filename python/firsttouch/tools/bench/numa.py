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

from itertools import product
from typing import TYPE_CHECKING

import firsttouch as ft
from firsttouch.tools.bench.drawing import bars, matrix
from firsttouch.tools.bench.settings import Settings, chosen
from firsttouch.tools.bench.tasks.numa import COPIES
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import MIB, name
from firsttouch.tools.measuring.statistics import Estimate, median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TASK = "firsttouch.tools.bench.tasks.numa"
ROW = 1 * MIB  # as on the slides
ARRAYS = 3
STATE = ("neither written before", "target not written before", "source not written before", "both resident")


def run(settings: Settings) -> Section:
    """Measure four copies in a row, then all combinations of nodes."""
    section = Section(
        "numa",
        "Copies between NUMA nodes, cold and warm",
        "how fast is a copy, by the nodes of the processor, the source and the target? *Cold*: arrays that were never "
        "written, as is common in benchmarks of this kind. *Warm*: the same arrays once they are resident. "
        "Small pages (4 KiB on most machines); GB/s are bytes copied, each read once and written once.",
    )
    nodes = ft.topology().nodes
    cpus = [node.number for node in nodes if node.processors]
    memories = [node.number for node in nodes if node.memory] or cpus
    plan = Plan(2, 3) if settings.quick else Plan(4, 5)
    others = [node for node in memories if node != memories[0]]
    in_a_row(section, cpus[0], memories[0], memories[0], plan)
    if others:
        in_a_row(section, cpus[0], memories[0], others[0], plan)
    settings.progress(0.2)
    sizes, notes = chosen(settings, (64 * MIB,), (16 * MIB,), ARRAYS)
    section.notes[:0] = notes
    ways = list(product(cpus, memories, memories))
    for at, size in enumerate(sizes):
        samples: dict[tuple[int, int, int], Samples] = {}
        for number, (cpu, source, target) in enumerate(ways):
            call = Call(TASK, "between", {"cpu": cpu, "source": source, "target": target, "nbytes": size})
            samples[cpu, source, target] = collect([NUMPY], call, plan, ARRAYS * size)
            settings.progress(0.2 + 0.8 * (at + (number + 1) / len(ways)) / len(sizes))
        section.raw[f"between {size}"] = {str(way): each.replies for way, each in samples.items()}
        between(section, size, samples)
    return section


def in_a_row(section: Section, cpu: int, near: int, far: int, plan: Plan) -> None:
    """Repeat the slides' copies on these nodes: table, picture and conclusion."""
    call = Call(TASK, "in_a_row", {"cpu": cpu, "near": near, "far": far, "nbytes": ROW})
    samples = collect([NUMPY], call, plan, 8 * ROW)
    section.raw[f"in a row {near} {far}"] = samples.replies
    where = f"all on node {near}" if near == far else f"a0 and b0 on node {near}, a1 and b1 on node {far}"
    title = f"Four copies of {name(ROW)} in a row, {where}, from node {cpu}"
    table = Table(f"**{title}**", ["copy", "before it", "first time", "page faults", "again", "page faults again"])
    times: dict[str, list[float]] = {"first time": [], "again, all resident": []}
    for (target, source), state in zip(COPIES, STATE, strict=True):
        key = f"{target} {source}"
        row = [f"{target} from {source}", state]
        for when, seconds in zip(("cold", "again"), times.values(), strict=True):
            time = median(samples.column(NUMPY, f"{key} {when}") * 1e6)
            seconds.append(time.value)
            count = median(samples.column(NUMPY, f"{key} {when} faults")).value
            row += [f"{time.value:,.0f} us [{time.low:,.0f}, {time.high:,.0f}]", f"{count:,.0f}"]
        table.rows.append(row)
    section.tables.append(table)
    first, again = times.values()
    groups = [f"{target} from {source}\n{state}" for (target, source), state in zip(COPIES, STATE, strict=True)]

    def draw(axes: Axes) -> None:
        bars(axes, groups, times, "{:,.0f}")
        axes.set_ylabel("microseconds")

    picture = "row" if near == far else "row-two-nodes"
    section.pictures.append(Picture(picture, f"{title}: most of the time is first touch", draw))
    section.notes.append(
        f"{title}: **{max(first) / min(first):.0f} times** between the slowest and the fastest the first time, "
        f"{max(again) / min(again):.2f} times again. The first time measures page faults, not distance."
    )


def between(section: Section, size: int, samples: dict[tuple[int, int, int], Samples]) -> None:
    """Report all combinations of nodes: table, picture, and the difference in words."""
    table = Table(
        f"**A copy of {name(size)}, GB/s**",
        ["processor's node", "source", "target", "cold", "warm", "cold time / warm", "page faults cold, warm"],
    )
    warm: dict[tuple[int, int, int], float] = {}
    cold: dict[tuple[int, int, int], float] = {}
    gains: list[float] = []
    for way, each in samples.items():
        rates = [median(size / each.column(NUMPY, state) / 1e9) for state in ("cold", "warm")]
        cold[way], warm[way] = (rate.value for rate in rates)
        gain = median(each.column(NUMPY, "cold") / each.column(NUMPY, "warm"))
        gains.append(gain.value)
        counts = ", ".join(f"{median(each.column(NUMPY, f'{state} faults')).value:,.0f}" for state in ("cold", "warm"))
        table.rows.append([*map(str, way), *map(rate_words, rates), str(gain), counts])
    section.tables.append(table)
    wrong = [way for way, each in samples.items() if each.column(NUMPY, "misplaced").any()]
    if not all(each.column(NUMPY, "bound").all() for each in samples.values()):
        section.notes.append("Memory cannot be bound to nodes here: the kernel placed the pages.")
    elif wrong:
        section.notes.append(f"Pages were not on the requested nodes (processor, source, target): {wrong}.")
    dearest = max(gains)
    section.notes.append(f"A cold copy of {name(size)} takes up to {dearest:.1f} times as long as a warm one.")
    if len(warm) == 1:
        section.notes.append(
            "**This machine has one node, so there is no distance to measure.** Only first touch makes a difference."
        )
        return
    local = [rate for (cpu, source, target), rate in warm.items() if cpu == source == target]
    remote = [rate for (cpu, source, target), rate in warm.items() if not cpu == source == target]
    section.notes.append(
        f"**Distance costs up to {max(local) / min(remote):.2f} times, first touch up to {dearest:.2f} times.** "
        f"Warm copies: {max(local):.1f} GB/s on one node, down to {min(remote):.1f} across nodes."
    )
    section.pictures.append(
        Picture("matrix", f"A copy of {name(size)} between nodes: GB/s warm, in brackets cold", matrix(warm, cold))
    )


def rate_words(rate: Estimate) -> str:
    """Format GB/s with their interval."""
    return f"{rate.value:.1f} [{rate.low:.1f}, {rate.high:.1f}]"

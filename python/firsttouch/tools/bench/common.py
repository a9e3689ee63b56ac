"""What the experiments share: their settings, processes that are measured in shuffled rounds, and plots."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from _firsttouch_start import units
from firsttouch import _firsttouch
from firsttouch.tools.measuring.contenders import NUMPY, Contender
from firsttouch.tools.measuring.machine import available
from firsttouch.tools.measuring.rounds import TOUCH, Call, Worker
from firsttouch.tools.measuring.sizes import ROOM, fitting, name
from firsttouch.tools.measuring.statistics import Estimate, median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Key = TypeVar("Key", bound=Hashable)

#: Kinds of pages, and the allocator of each.
KINDS = {"np.zeros": "numpy_default()", "4 KiB pages": "pages()", "huge pages (THP)": 'pages(huge="thp")'}
# Every array comes from the kernel; otherwise glibc would, from 1 MiB on, reuse what another iteration has written.
FRESH = Contender("fresh", {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)})


@dataclass(frozen=True)
class Settings:
    """The argument of each experiment's `run`."""

    quick: bool = False
    """Run with few sizes and rounds, in ten to twenty seconds."""
    sizes: tuple[int, ...] | None = None
    """Array sizes in bytes; `None` for those that suit the experiment and the machine."""
    allocators: tuple[str, ...] = ()
    """Further allocators for experiments that compare allocators, as expressions that `install` accepts."""
    progress: Callable[[float], None] = lambda _done: None
    """Called with the completed fraction, from 0 to 1."""

    def chosen(self, full: Sequence[int], quick: Sequence[int], arrays: int) -> tuple[list[int], list[str]]:
        """Return the sizes to run, and a note about those left out because so many arrays do not fit into memory."""
        if self.sizes is not None:
            return list(self.sizes), []
        return fitting(quick if self.quick else full, arrays)


def parse(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of sizes, in bytes, smallest first.

    Raises :exc:`ValueError` with the invalid one.
    """
    sizes = {_firsttouch.parse_size(word.strip()) for word in text.split(",") if word.strip()}
    if not sizes:
        raise ValueError(f"--sizes {text!r}: give sizes, as in 4KiB,1MiB")
    if min(sizes) < 8:
        raise ValueError(f"--sizes: an array of {min(sizes)} bytes holds no item; give at least 8")
    return tuple(sorted(sizes))


def check(sizes: Sequence[int], experiment: str, arrays: int) -> None:
    """Raise :exc:`ValueError` if that many arrays of a size do not fit, with the largest size that does."""
    if not sizes or max(sizes) * arrays <= available() * ROOM:
        return
    live = f"{arrays} such arrays are live at once" if arrays > 1 else "one such array is live"
    raise ValueError(
        f"{experiment}: {name(max(sizes))} is too large: {live}, and {units.size(available())} are free; "
        f"up to {units.size(int(available() * ROOM) // arrays)} fit"
    )


@dataclass(frozen=True)
class Cell:
    """A call to make in a process of its own, and the bytes that it can use, which are touched beforehand."""

    call: Call
    footprint: int
    contender: Contender = NUMPY


def measured(
    cells: Mapping[Key, Cell], rounds: int, progress: Callable[[float], None]
) -> dict[Key, list[dict[str, Any]]]:
    """Call every cell once per round, each time in a new process, in an order that is shuffled anew in every round."""
    shuffle = random.Random(0)
    found: dict[Key, list[dict[str, Any]]] = {key: [] for key in cells}
    for number in range(rounds):
        for at, (key, cell) in enumerate(shuffle.sample(list(cells.items()), len(cells))):
            with Worker(cell.contender) as worker:
                worker.ask(Call(*TOUCH, {"nbytes": cell.footprint}))
                found[key].append(dict(worker.ask(cell.call)))
            progress((number * len(cells) + at + 1) / (rounds * len(cells)))
    return found


def middle(replies: Sequence[Mapping[str, Any]], figure: str) -> float:
    """Return the median of a figure over the rounds."""
    return float(np.median([reply[figure] for reply in replies]))


def ratio(of: Sequence[Mapping[str, Any]], to: Sequence[Mapping[str, Any]], figure: str) -> Estimate:
    """Return the median of a figure's ratio, round by round, with its interval."""
    pairs = [one[figure] / other[figure] for one, other in zip(of, to, strict=True)]
    return median(np.array(pairs, float)[:, None])


def faults() -> int:
    """Return the page faults of the calling thread so far that read nothing from a disk."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def by_size(axes: Axes, sizes: Sequence[int]) -> None:
    """Label the horizontal axis with sizes and the vertical one with plain numbers; both are logarithmic."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set(xscale="log", yscale="log")
    axes.set_xticks(sizes, [name(size) for size in sizes])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), handlelength=3.5)


def bars(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]], form: str = "{:.2f}") -> None:
    """Plot a bar for each series in each group, side by side, with its value above it."""
    width = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        drawn = axes.bar(places, values, width * 0.92, label=label)
        axes.bar_label(drawn, [form.format(value) for value in values], fontsize=8, padding=1)
    axes.set_xticks(range(len(groups)), groups)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False, ncols=min(4, len(series)))

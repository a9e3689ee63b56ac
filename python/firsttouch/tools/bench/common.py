"""What the experiments share: their settings, processes that are measured in shuffled rounds, and plots."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from firsttouch._internal import units
from firsttouch.tools.measuring.contenders import NUMPY, Contender
from firsttouch.tools.measuring.machine import available
from firsttouch.tools.measuring.processes import TOUCH, Call, ask
from firsttouch.tools.measuring.report import Picture, Table
from firsttouch.tools.measuring.statistics import Estimate, estimate

if sys.platform == "win32":
    from firsttouch.tools.measuring import jobs
else:
    import resource

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Key = TypeVar("Key", bound=tuple[object, ...])
#: What a process found, by the name of the figure; of every round.
Replies = Sequence[Mapping[str, Any]]

KIB, MIB = 1 << 10, 1 << 20
#: The fraction of the free memory that an experiment may use.
ROOM = 0.6


def name(nbytes: int) -> str:
    """Format a size exactly, because sizes are keys and must be distinguishable."""
    return units.size(nbytes, 6)


@dataclass(frozen=True)
class Settings:
    """The argument of each experiment's `run`."""

    quick: bool = False
    """Run with few sizes and rounds, in ten to twenty seconds."""
    sizes: tuple[int, ...] | None = None
    """Array sizes in bytes; `None` for those that suit the experiment."""
    progress: Callable[[float], None] = lambda _done: None
    """Called with the completed fraction, from 0 to 1."""

    def chosen(self, full: Sequence[int], quick: Sequence[int], arrays: int) -> list[int]:
        """Return the sizes to run: those of which so many arrays fit into memory.

        Raises :exc:`ValueError` if none fits.
        """
        most = int(available() * ROOM) // arrays
        sizes = [size for size in self.sizes or (quick if self.quick else full) if size <= most]
        if not sizes:
            raise ValueError(f"not enough memory for {units.count(arrays, 'array')}: {name(most)} fit")
        return sizes


@dataclass
class Section:
    """What an experiment found."""

    name: str
    title: str
    asked: str = ""
    tables: list[Table] = field(default_factory=list[Table])
    notes: list[str] = field(default_factory=list[str])
    pictures: list[Picture] = field(default_factory=list[Picture])
    raw: dict[str, Any] = field(default_factory=dict[str, Any])

    def measure(self, cells: Mapping[Key, Cell], rounds: int, settings: Settings) -> dict[Key, list[Any]]:
        """Call every cell once per round, each time in a new process, in an order that is shuffled in every round."""
        shuffle, found = random.Random(0), {key: list[Any]() for key in cells}
        for number in range(rounds):
            for at, (key, cell) in enumerate(shuffle.sample(list(cells.items()), len(cells))):
                touch = Call(*TOUCH, {"nbytes": cell.footprint})
                found[key].append(ask(cell.contender, [touch, cell.call])[1])
                settings.progress((number * len(cells) + at + 1) / (rounds * len(cells)))
        self.raw = {", ".join(map(str, key)): replies for key, replies in found.items()}
        return found


class Cell:
    """A function to call in a process of its own, and the bytes that it can use, which are touched beforehand."""

    def __init__(
        self, function: Callable[..., object], footprint: int, contender: Contender = NUMPY, **arguments: Any
    ) -> None:
        self.call = Call(function.__module__, function.__name__, arguments)
        self.footprint = footprint
        self.contender = contender


def middle(replies: Replies, figure: str) -> float:
    """Return the median of a figure over the rounds."""
    return float(np.median([reply[figure] for reply in replies]))


def ratio(replies: Replies, figure: str, other: str) -> Estimate:
    """Return the ratio of two figures, round by round: the median with its interval."""
    return estimate([reply[figure] / reply[other] for reply in replies])


def faults() -> int:
    """Return the page faults of the calling thread so far that read nothing from a disk; on Windows, the process's."""
    if sys.platform == "win32":
        return jobs.faults()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def lines(title: str, sizes: Sequence[int], series: Mapping[str, Sequence[float]], ylabel: str) -> Picture:
    """Return a picture with a line over the sizes for each of the series; both axes are logarithmic."""

    def draw(axes: Axes) -> None:
        for label, values in series.items():
            axes.plot(sizes, values, marker="o", label=label)
        axes.set(xscale="log", yscale="log", xlabel="each array", ylabel=ylabel)
        axes.set_xticks(sizes, [name(size) for size in sizes])
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))

    return Picture(title, draw)


def bars(title: str, groups: Sequence[str], series: Mapping[str, Sequence[float]], ylabel: str) -> Picture:
    """Return a picture with a bar for each of the series in each group, side by side, with its value above it."""

    def draw(axes: Axes) -> None:
        width = 0.8 / len(series)
        for number, (label, values) in enumerate(series.items()):
            places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
            drawn = axes.bar(places, values, width * 0.92, label=label)
            axes.bar_label(drawn, [units.digits(value) for value in values], fontsize=8, padding=1)
        axes.set_xticks(range(len(groups)), groups)
        axes.set_ylabel(ylabel)
        axes.margins(y=0.12)
        axes.legend(frameon=False)

    return Picture(title, draw)

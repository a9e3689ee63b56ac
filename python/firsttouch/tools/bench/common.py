"""The harness of the experiments: cells, each measured in a new process, and what is shown of them."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from firsttouch._firsttouch import headroom
from firsttouch._internal import units
from firsttouch.tools.measuring.report import Table
from firsttouch.tools.measuring.statistics import Estimate, estimate

if sys.platform == "win32":
    from firsttouch.tools.measuring import jobs
else:
    import resource

Key = TypeVar("Key", bound=tuple[object, ...])
#: Figures by the labels of their row, and then by column.
Rows = Mapping[Any, Mapping[str, Any]]

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
        """Return the sizes to run, of which so many arrays fit into memory.

        Raises :exc:`ValueError` if none fits.
        """
        most = int(headroom() * ROOM) // arrays
        sizes = [size for size in self.sizes or (quick if self.quick else full) if size <= most]
        if not sizes:
            raise ValueError(f"not enough memory for {units.count(arrays, 'array')}: {name(most)} fit")
        return sizes


class Replies(list[dict[str, Any]]):
    """What a cell found in each round, by the name of the figure."""

    def medians(self) -> dict[str, float]:
        """Return the median of each figure over the rounds."""
        return {figure: float(np.median([reply[figure] for reply in self])) for figure in self[0]}

    def ratio(self, figure: str, other: str) -> Estimate:
        """Return the ratio of two figures, round by round: the median with its interval."""
        return estimate([reply[figure] / reply[other] for reply in self])


@dataclass
class Section:
    """What an experiment found."""

    title: str
    tables: list[Table] = field(default_factory=list[Table])
    notes: list[str] = field(default_factory=list[str])
    raw: dict[str, Any] = field(default_factory=dict[str, Any])

    def measure(self, settings: Settings, rounds: int, cells: Mapping[Key, Callable[[], Any]]) -> dict[Key, Replies]:
        """Call every cell once per round, in an order that is shuffled in every round."""
        shuffle, found = random.Random(0), {key: Replies() for key in cells}
        for number in range(rounds):
            for at, (key, cell) in enumerate(shuffle.sample(list(cells.items()), len(cells))):
                found[key].append(cell())
                settings.progress((number * len(cells) + at + 1) / (rounds * len(cells)))
        self.raw = {", ".join(map(str, key)): replies for key, replies in found.items()}
        return found

    def table(self, title: str, labels: Sequence[str], rows: Rows, formats: Mapping[str, Callable[[Any], str]]) -> None:
        """Add a table with the labels of each row and these columns."""
        table = Table(title, [*labels, *formats])
        table.rows += [[*key, *(shown(row[column]) for column, shown in formats.items())] for key, row in rows.items()]
        self.tables.append(table)


def faults() -> int:
    """Return the page faults of the calling thread so far that read nothing from a disk; on Windows, the process's."""
    if sys.platform == "win32":
        return jobs.faults()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def timed(call: Callable[[], Any]) -> tuple[float, int, Any]:
    """Return the seconds and page faults of a call, and what it returned."""
    before, start = faults(), time.perf_counter()
    value = call()
    took = time.perf_counter() - start
    return took, faults() - before, value

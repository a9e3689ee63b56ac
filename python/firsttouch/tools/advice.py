"""A trace summarized by source line, and an estimate of what a pool would save the program.

The pages of large arrays that the kernel had to fault in were counted. Avoidable are those of arrays for which a pool
would have had memory ready, freed by the program less than a second before. Each page costs what was measured on this
machine.
"""

from __future__ import annotations

import contextlib
import mmap
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from _firsttouch_start import units
from firsttouch import _firsttouch

#: Shares of the time below which there is nothing, and little, to gain.
_NOTHING, _LITTLE = 0.01, 0.05
#: Processor time of child processes, as a fraction of the run time, from which on it is worth mentioning.
_CHILDREN = 0.1
#: Waiting for a processor, as a fraction of the run time, from which on it is worth mentioning.
_WAITED = 0.2
#: Kernel time is counted in ticks; from this many seconds on it is reliable.
_TICKS = 0.25


@dataclass(frozen=True)
class Prices:
    """Seconds for a base page, a huge page, mapping and unmapping, and a byte that a pool clears."""

    small: float
    huge: float
    mapped: float
    clear: float
    page: int
    huge_page: int

    def of(self, small: float, huge: float, mapped: float) -> float:
        """Return the seconds that these faults and mappings take."""
        return small * self.small + huge * self.huge + mapped * self.mapped

    def plainly(self, each: Mapping[str, Any]) -> float:
        """Return the kernel seconds that a line's arrays cost."""
        return self.of(each["faults_small"], each["faults_huge"], each["faults_mapped"])

    def pooled(self, each: Mapping[str, Any]) -> float:
        """Return the kernel seconds that they would cost on a pool: for fresh memory and purges."""
        small = each["pooled_small_bytes"] / self.page
        huge = each["pooled_huge_bytes"] / (self.huge_page or self.page)
        return self.of(small, huge, each["pooled_purges"])


@dataclass(frozen=True)
class Line:
    """A source line, with its blocks of 64 KiB or more; seconds are estimates, ``avoidable`` less than 0 a loss."""

    file: str
    line: int
    count: int
    bytes: int
    median_lifetime: float
    faults: float
    seconds: float
    avoidable: float

    @property
    def place(self) -> str:
        """File and line, or what stands for them."""
        return f"{self.file}:{self.line}" if self.file else "(no Python code)"


@dataclass(frozen=True)
class Summary:
    """A whole trace: ``facts`` as in its file, and its lines, most expensive first."""

    facts: Mapping[str, Any]
    lines: list[Line]
    prices: Prices

    @property
    def wall(self) -> float:
        """The seconds that the program ran; those of the trace if the program was killed."""
        return float(self.facts["facts"].get("wall") or self.facts["seconds"])

    @property
    def waited(self) -> float:
        """The seconds in which its main thread could have run, but other programs had the processors."""
        return float(self.facts["facts"].get("waited") or 0)

    @property
    def processor(self) -> float:
        """The program's seconds of processor time, which others hardly disturb; `wall` if it was killed."""
        facts = self.facts["facts"]
        return sum(float(facts.get(name) or 0) for name in ("user", "kernel")) or self.wall

    @property
    def children(self) -> float:
        """Seconds of processor time of child processes, whose arrays were not counted."""
        return float(self.facts["facts"].get("children") or 0)

    @property
    def seconds(self) -> float:
        """Estimated seconds in the kernel for large blocks."""
        return sum(line.seconds for line in self.lines)

    @property
    def gain(self) -> float:
        """The seconds of processor time that a pool would have saved; less than 0 if it would have cost more."""
        return min(sum(line.avoidable for line in self.lines), self.processor)

    @property
    def share(self) -> float:
        """The fraction of the processor time that would be saved."""
        return self.gain / self.processor if self.processor > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            **self.facts,
            "wall": self.wall,
            "waited": self.waited,
            "processor": self.processor,
            "kernel_seconds": self.seconds,
            "gain_seconds": self.gain,
            "gain_share": self.share,
            "prices": asdict(self.prices),
            "lines": [asdict(line) for line in self.lines],
        }

    def words(self, program: str) -> str:
        """Return the conclusion, with what limits it: work of child processes, and waiting."""
        said = self._judgement(program)
        if self.children > _CHILDREN * self.processor:
            said += (
                f"; its child processes, which took {self.children:.2g} s of processor time, were not examined:"
                " firsttouch compare measures them all"
            )
        elif self.waited > _WAITED * self.wall:
            part = units.share(self.waited, self.wall)
            said += f"; the machine was busy, and the program waited for a processor for {part} of its run time"
        return said

    def _judgement(self, program: str) -> str:
        if not self.lines:
            return "nothing to gain: the program made no array of 64 KiB or more"
        part = f"about {units.share(abs(self.share), 1)} of its processor time"
        if self.share < -_NOTHING:
            return f"nothing to gain from pooled memory: it would take {part} more (estimated)"
        if self.share < _NOTHING:
            took = units.share(self.seconds, self.processor)
            why = f"the kernel's work for arrays took {took} of its processor time"
            kept = "" if self.seconds < _NOTHING * self.processor else ", almost none of it avoidable"
            return f"nothing to gain from pooled memory: {why}{kept} (estimated)"
        if self.share < _LITTLE:
            return f"little to gain from pooled memory: {part} (estimated)"
        return f"pooled memory would save {part} (estimated): firsttouch run {program}"


def summarize(file: str, prices: Prices, incomplete: bool = False) -> Summary:
    """Read a trace.

    Raises :exc:`ValueError` if the file is not a trace, or is incomplete, and :exc:`OSError` if it cannot be read.
    """
    facts = _firsttouch.trace_summary(file, incomplete)
    found = facts.pop("lines")
    bound = _bound(facts, found, prices)
    lines: list[Line] = []
    for each in found:
        seconds = prices.plainly(each) * bound
        cleared = (each["cleared_bytes"] - each["pooled_cleared_bytes"]) * prices.clear * bound
        avoidable = seconds - prices.pooled(each) * bound + cleared
        faults = each["faults_small"] + each["faults_huge"]
        same = {name: each[name] for name in ("file", "line", "count", "bytes", "median_lifetime")}
        lines.append(Line(**same, faults=faults, seconds=seconds, avoidable=avoidable))
    lines.sort(key=lambda line: (-line.seconds, -line.bytes))
    return Summary(facts, lines, prices)


def _bound(facts: Mapping[str, Any], found: list[dict[str, Any]], prices: Prices) -> float:
    """Bound the cost of faults by all the time that the program spent in the kernel.

    That is counted in ticks, which says nothing of a short run; then the bound is all its processor time or, if it was
    killed, the duration of the trace.
    """
    user, kernel = (float(facts["facts"].get(name) or 0) for name in ("user", "kernel"))
    most = kernel if kernel >= _TICKS else user + kernel or float(facts["seconds"])
    estimated = sum(prices.plainly(each) for each in found)
    return min(1.0, most / estimated) if most and estimated else 1.0


_ROUNDS = 5
_SMALL, _HUGE = 4 << 20, 16 << 20
_MAPPINGS = 20


def calibrate() -> Prices:
    """Measure the cost of page faults in a few milliseconds.

    The cost of a page is what it adds to a fill: mapping, faulting in and unmapping fresh memory, minus the same fill
    of resident memory. It includes the effect of the kernel's zeroing on the caches, as a program would see it.
    Processor time is counted: on a busy machine hardly any round ends without an interruption. If huge pages are not
    available, they cost as much as their base pages.
    """
    page, huge_page = mmap.PAGESIZE, _huge_page_size()
    small, warm = _per_byte(_SMALL, getattr(mmap, "MADV_NOHUGEPAGE", None), page)
    huge = small
    if huge_page:
        huge, _ = _per_byte(max(_HUGE // huge_page, 2) * huge_page, getattr(mmap, "MADV_HUGEPAGE", None), huge_page)
    return Prices(small * page, huge * (huge_page or page), _mapping(), warm, page, huge_page)


def _mapping() -> float:
    """Return the seconds of a mapping of which nothing is touched; the fastest round, as below."""
    best = float("inf")
    for _ in range(_ROUNDS):
        begin = time.thread_time()
        for _ in range(_MAPPINGS):
            mmap.mmap(-1, _SMALL, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        best = min(best, (time.thread_time() - begin) / _MAPPINGS)
    return best


def _per_byte(size: int, advice: int | None, align: int) -> tuple[float, float]:
    """Return the extra seconds for a byte of fresh memory, and the seconds for a byte of warm memory."""
    rounds = [_round(size, advice, align) for _ in range(_ROUNDS)]
    # The fastest round: others wait for a hypervisor that backs memory for the first time, or for other programs.
    whole, warm = min(whole for whole, _ in rounds), min(warm for _, warm in rounds)
    return max(0.0, whole - warm) / size, warm / size


def _round(size: int, advice: int | None, align: int) -> tuple[float, float]:
    """Return the seconds to map, fill and unmap, and to fill again."""
    begin = time.thread_time()
    memory = mmap.mmap(-1, size + align, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if advice is not None:
        with contextlib.suppress(OSError):  # without huge pages, small ones are measured
            memory.madvise(advice)
    whole = np.frombuffer(memory, np.uint8)
    start = -whole.ctypes.data % align
    array = whole[start : start + size]
    array.fill(1)
    filled = time.thread_time()
    array.fill(2)
    again = time.thread_time()
    del whole, array
    memory.close()
    closed = time.thread_time()
    return (filled - begin) + (closed - again), again - filled


def _huge_page_size() -> int:
    """Return the size of a transparent huge page, or 0 if the kernel has none."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as text:
            if "[never]" in text.read():
                return 0
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", encoding="ascii") as text:
            return int(text.read())
    except (OSError, ValueError):
        return 0

"""The spans of a region as in the pool's heap: best fit, joined when freed, purged by age in whole pages."""

from __future__ import annotations

import numpy as np

_START = 1 << 12


class Region:
    """One segment of units: 4 KiB of base pages, or 64 KiB of huge pages of 2 MiB."""

    def __init__(self, huge: bool) -> None:
        self.unit = (64 if huge else 4) << 10
        self.page = (2 << 20) // self.unit if huge else 1
        self.dirty = self.top = 0  # units
        self._ages = np.zeros(_START, np.int64)  # 0: nothing is there; else one more than the tick of the last free
        self._free = np.zeros(_START, bool)
        self._ends: dict[int, int] = {}  # of free spans, by start
        self._starts: dict[int, int] = {}
        self._used: dict[int, tuple[int, int]] = {}  # spans by block

    def take(self, block: int, size: int) -> tuple[int, int]:
        """Allocate a block; return the bytes of its span, and how many of them are fresh."""
        need = -(-size // self.unit)
        fits = [(end - start, start) for start, end in self._ends.items() if end - start >= need]
        start, end = self._best(fits) if fits else self._grow(need)
        low, high = self._count(start, start + need), self._count(end - need, end)
        self._unlist(start)
        at = end - need if high > low else start
        if at > start:
            self._list(start, at)
        if at + need < end:
            self._list(at + need, end)
        self._free[at : at + need] = False
        self._used[block] = at, at + need
        kept = high if high > low else low
        self.dirty -= kept
        return need * self.unit, (need - kept) * self.unit

    def give(self, block: int, tick: int) -> int:
        """Free a block; return the bytes of its span."""
        start, end = self._used.pop(block)
        self._free[start:end] = True
        self._ages[start:end] = tick + 1
        self.dirty += end - start
        size = (end - start) * self.unit
        if end in self._ends:
            end = self._unlist(end)
        if start in self._starts:
            start = self._starts[start]
            self._unlist(start)
        self._list(start, end)
        return size

    def purge(self, before: float, most: float) -> int:
        """Give back whole pages that nothing used since a tick, up to some bytes; return how many were dirty."""
        whole = -(-self.top // self.page) * self.page
        ages = self._ages[:whole].reshape(-1, self.page)
        old = (self._free[:whole].reshape(-1, self.page) & (ages <= before + 1)).all(axis=1) & ages.any(axis=1)
        pages = np.flatnonzero(old)[: int(-(-most // (self.page * self.unit)))] if most < float("inf") else old
        gone = int(np.count_nonzero(ages[pages]))
        ages[pages] = 0
        self.dirty -= gone
        return gone * self.unit

    def _best(self, fits: list[tuple[int, int]]) -> tuple[int, int]:
        """Return the shortest span that is partly dirty, or else the shortest."""
        dirty = [(length, start) for length, start in fits if self._ages[start : start + length].any()]
        length, start = min(dirty or fits)
        return start, start + length

    def _grow(self, need: int) -> tuple[int, int]:
        """Raise the top; return the free span below it, which is long enough then."""
        start = self._starts.get(self.top, self.top)
        if start < self.top:
            self._unlist(start)
        self.top = start + need
        while len(self._ages) < self.top + self.page:
            self._ages = np.concatenate([self._ages, np.zeros_like(self._ages)])
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
        self._free[start : self.top] = True
        self._list(start, self.top)
        return start, self.top

    def _count(self, start: int, end: int) -> int:
        return int(np.count_nonzero(self._ages[start:end]))

    def _list(self, start: int, end: int) -> None:
        self._ends[start], self._starts[end] = end, start

    def _unlist(self, start: int) -> int:
        end = self._ends.pop(start)
        del self._starts[end]
        return end

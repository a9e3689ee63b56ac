"""A pool that follows a rule: what it gives back, faults in again, and keeps idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.retention.flows import Flow
from benchmarks.retention.rules import EPOCH, Fixed
from benchmarks.retention.spans import Region

#: Ticks after which memory is old enough to go first when room is made.
_AGES = 30, 10, 5, 3, 2, 1, 0


@dataclass
class Figures:
    """Bytes; those that were idle are a mean over time."""

    taken: int = 0
    again: int = 0
    peak_active: int = 0
    peak_held: int = 0
    peak_idle: int = 0
    idle: float = 0.0


class _Pool:
    def __init__(self, rule: Fixed) -> None:
        self.rule, self.figures = rule, Figures()
        self.regions = Region(False), Region(True)
        self._active = self._gone = self._now = self._tick = 0
        self._product = 0.0

    def flow(self, flow: Flow) -> None:
        self._pass_to(flow.micros)
        if flow.size < 0:
            self._active -= self.regions[flow.region].give(flow.block, self._tick)
        else:
            self._take(flow)
        idle, figures = self._idle(), self.figures
        figures.peak_held = max(figures.peak_held, self._active + idle)
        figures.peak_idle = max(figures.peak_idle, idle)

    def end(self) -> Figures:
        self.figures.idle = self._product / max(self._now, 1)
        return self.figures

    def _take(self, flow: Flow) -> None:
        size, fresh = self.regions[flow.region].take(flow.block, flow.size)
        self._active += size
        figures = self.figures
        figures.taken += size
        peak = figures.peak_active = max(figures.peak_active, self._active)
        if fresh:
            again = min(fresh, self._gone)
            figures.again += again
            self._gone -= again
            self.rule.took(flow.region, fresh, peak, self._now)
            allowed = self.rule.allowed(peak)
            beyond = self._active + self._idle() - allowed
            if beyond > 0:
                self._make_room(beyond + allowed / 32)  # somewhat more at a time, as the pool does

    def _pass_to(self, micros: int) -> None:
        """Let time pass; idle memory decays at ticks."""
        while (self._tick + 1) * EPOCH <= micros:
            self._pass((self._tick + 1) * EPOCH)
            self._tick += 1
            if self._idle():
                for index, region in enumerate(self.regions):
                    self._gave_back(index, region.purge(self._tick - self.rule.patience(), float("inf")), decayed=True)
        self._pass(micros)

    def _pass(self, micros: int) -> None:
        self._product += self._idle() * (micros - self._now)
        self._now = micros

    def _make_room(self, wanted: float) -> None:
        for age in _AGES:
            for index in (1, 0):
                if wanted > 0:
                    gone = self.regions[index].purge(self._tick - age, wanted)
                    self._gave_back(index, gone, decayed=False)
                    wanted -= gone

    def _gave_back(self, index: int, size: int, *, decayed: bool) -> None:
        if size:
            self._gone += size
            self.rule.gave_back(index, size, self._now, decayed)

    def _idle(self) -> int:
        return sum(region.dirty * region.unit for region in self.regions)


def simulate(flows: Iterable[Flow], rule: Fixed) -> Figures:
    """Return what a pool with this rule would have done."""
    pool = _Pool(rule)
    for flow in flows:
        pool.flow(flow)
    return pool.end()

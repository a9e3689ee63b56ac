"""What a pool would gain for a program, told from one plain run of it: an estimate, in seconds and in words.

Pages of large arrays that the kernel had to make real were counted one by one. Avoidable are those of arrays for
which a pool would have had memory ready: freed by the program not long before, and not yet given back. What it would
still take fresh comes on huge pages, where the system has them. Each page has the price that this machine was measured
to ask for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.trace.lines import Line, Summary

#: Shares of the time below which there is nothing, and little, to gain.
_NOTHING, _LITTLE = 0.01, 0.05
#: Processor time of child processes, as a part of the time, from which on they are worth a word.
_CHILDREN = 0.1


@dataclass(frozen=True)
class Advice:
    """Seconds of ``wall`` that a pool would spare, and the lines where, those that gain most first."""

    seconds: float
    wall: float
    lines: list[Line]
    summary: Summary

    @property
    def share(self) -> float:
        """The part of the time that would be spared."""
        return min(1.0, self.seconds / self.wall) if self.wall > 0 else 0.0

    @property
    def children(self) -> float:
        """Seconds of processor time of child processes, whose arrays nobody counted."""
        return float(self.summary.facts["facts"].get("children") or 0)

    def words(self, program: str) -> str:
        """A sentence, and where child processes did much of the work another."""
        if self.children <= _CHILDREN * self.wall:
            return self._judgement(program)
        return (
            f"{self._judgement(program)}; its child processes, which took {self.children:.2g} s of processor time, were"
            " not looked at: firsttouch compare measures all of them"
        )

    def _judgement(self, program: str) -> str:
        if not self.summary.lines:
            return "nothing to gain: the program made no array of 64 KiB or more"
        part = f"about {units.share(self.share, 1)} of the time"
        if self.share < _NOTHING:
            why = f"the kernel's work for arrays took {units.share(self.summary.seconds, self.wall)} of the time"
            kept = "" if self.summary.seconds < _NOTHING * self.wall else ", and next to none of it is avoidable"
            return f"nothing to gain from pooled memory: {why}{kept} (estimated)"
        if self.share < _LITTLE:
            return f"little to gain from pooled memory: {part} (estimated)"
        return f"pooled memory would spare {part} (estimated): firsttouch run {program}"

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {"gain_seconds": self.seconds, "gain_share": self.share, **self.summary.as_dict()}


def advise(summary: Summary) -> Advice:
    """Judge a trace of NumPy's own memory."""
    lines = sorted(summary.lines, key=lambda line: -line.avoidable)
    return Advice(min(summary.avoidable, summary.wall), summary.wall, lines, summary)

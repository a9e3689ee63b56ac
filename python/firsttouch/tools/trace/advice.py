"""What a pool would save a program, estimated from one unmodified run, in seconds and in words.

The pages of large arrays that the kernel had to fault in were counted one by one. Avoidable are those of arrays for
which a pool would have had memory ready, freed by the program shortly before and not yet given back. What it would
still take fresh comes on huge pages, if the system has them. Each page costs what was measured on this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.trace.lines import Line, Summary

#: Shares of the time below which there is nothing, and little, to gain.
_NOTHING, _LITTLE = 0.01, 0.05
#: Processor time of child processes, as a fraction of the run time, from which on it is worth mentioning.
_CHILDREN = 0.1
#: Waiting for a processor, as a fraction of the run time, from which on it is worth mentioning.
_WAITED = 0.2


@dataclass(frozen=True)
class Advice:
    """The seconds of processor time that a pool would save, and the lines concerned, largest saving first."""

    seconds: float
    lines: list[Line]
    summary: Summary

    @property
    def share(self) -> float:
        """The fraction of the processor time that would be saved."""
        processor = self.summary.processor
        return self.seconds / processor if processor > 0 else 0.0

    @property
    def children(self) -> float:
        """Seconds of processor time of child processes, whose arrays were not counted."""
        return float(self.summary.facts["facts"].get("children") or 0)

    def words(self, program: str) -> str:
        """Return the conclusion, with what limits it: work of child processes, and waiting."""
        said = self._judgement(program)
        summary = self.summary
        if self.children > _CHILDREN * summary.processor:
            said += (
                f"; its child processes, which took {self.children:.2g} s of processor time, were not examined:"
                " firsttouch compare measures them all"
            )
        elif summary.waited > _WAITED * summary.wall:
            part = units.share(summary.waited, summary.wall)
            said += f"; the machine was busy, and the program waited for a processor for {part} of its run time"
        return said

    def _judgement(self, program: str) -> str:
        if not self.summary.lines:
            return "nothing to gain: the program made no array of 64 KiB or more"
        summary = self.summary
        part = f"about {units.share(abs(self.share), 1)} of its processor time"
        if self.share < -_NOTHING:
            return f"nothing to gain from pooled memory: it would take {part} more (estimated)"
        if self.share < _NOTHING:
            took = units.share(summary.seconds, summary.processor)
            why = f"the kernel's work for arrays took {took} of its processor time"
            kept = "" if summary.seconds < _NOTHING * summary.processor else ", almost none of it avoidable"
            return f"nothing to gain from pooled memory: {why}{kept} (estimated)"
        if self.share < _LITTLE:
            return f"little to gain from pooled memory: {part} (estimated)"
        return f"pooled memory would save {part} (estimated): firsttouch run {program}"

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {"gain_seconds": self.seconds, "gain_share": self.share, **self.summary.as_dict()}


def advise(summary: Summary) -> Advice:
    """Estimate from a trace of NumPy's own memory."""
    lines = sorted(summary.lines, key=lambda line: -line.avoidable)
    return Advice(min(summary.avoidable, summary.processor), lines, summary)

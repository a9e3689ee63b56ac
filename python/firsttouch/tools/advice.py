"""A trace summarized by source line, with what a pool would save the program, in words and tables.

The estimate is the native module's: what glibc would have taken fresh from the system for the same requests, and what a
pool would have, at the cost that was measured on this machine; in a range, as that depends on the caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from firsttouch import _firsttouch
from firsttouch._internal import units
from firsttouch.tools.cli import output

if TYPE_CHECKING:
    from firsttouch.tools.measuring.report import Table

#: Processor time of child processes, as a fraction of the program's, from which on it is worth mentioning.
_CHILDREN = 0.1
#: Letters of a path: a table with it fits 80 columns.
_LONG = 36
#: Lines that are shown.
_SHOWN = 10


@dataclass(frozen=True)
class Line:
    """A line of the program, with its blocks of 64 KiB or more; seconds are estimates, `avoidable` below 0 a loss.

    `library` is the line of a library through which it made the first of them, or empty.
    """

    file: str
    line: int
    library: str
    count: int
    bytes: int
    median_lifetime: float
    seconds: float
    avoidable: float

    @property
    def place(self) -> str:
        """File and line, of a long path its end; or what stands for them."""
        place = output.place(self.file, self.line) if self.file else "(no Python code)"
        return _end(place)

    def add_to(self, table: Table, *cells: str) -> None:
        """Add a row, and one below it for the line of a library through which this one made its blocks."""
        table.rows.append((self.place, *cells))
        if self.library:
            table.rows.append((f"  in {_end(self.library, _LONG - 5)}", *[""] * len(cells)))


def _end(text: str, most: int = _LONG) -> str:
    return text if len(text) <= most else f"...{text[3 - most :]}"


@dataclass(frozen=True)
class Summary:
    """A whole trace: ``facts`` as in its file, and its lines, most expensive first."""

    facts: Mapping[str, Any]
    lines: list[Line]

    def _seconds(self, name: str) -> float:
        return float(self.facts["facts"].get(name) or 0)

    @property
    def wall(self) -> float:
        """The seconds that the program ran; those of the trace if the program was killed."""
        return self._seconds("wall") or float(self.facts["seconds"])

    @property
    def processor(self) -> float:
        """The program's seconds of processor time, which others hardly disturb; `wall` if it was killed."""
        return float(self.facts["processor"])

    @property
    def seconds(self) -> float:
        """Estimated seconds in the kernel for large blocks."""
        return sum(line.seconds for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            **self.facts,
            "wall": self.wall,
            "kernel_seconds": self.seconds,
            "gain_share": [seconds / (self.processor or 1.0) for seconds in self.facts["gain_seconds"]],
            "lines": [asdict(line) for line in self.lines],
        }

    def words(self, program: str) -> str:
        """Return the conclusion, and that of child processes, which limits it. A trace has no program."""
        said = self._judgement(program)
        if self._seconds("children") > _CHILDREN * self.processor:
            said += (
                f"; its child processes, which took {self._seconds('children'):.2g} s of processor time, were not"
                " examined: firsttouch compare measures them all"
            )
        if why := self.facts["facts"].get("arrays_only"):
            said += f"; only arrays were recorded, not bytes, lists and the like: {why}"
        return said

    def _judgement(self, program: str) -> str:
        if not self.lines:
            return "nothing to gain: the program made no array and no buffer of 64 KiB or more"
        low, high = self.facts["gain_seconds"]
        if high < 0:
            more, share = units.seconds(-low), units.share(-low, self.processor)
            return f"nothing to gain from pooled memory: it would take up to {more} ({share}) more of processor time"
        most, all_of_it = units.seconds(high), f"of {units.seconds(self.processor)} of processor time"
        share = units.share(high, self.processor)
        if self.facts["verdict"] == "certain":
            part = f"between {units.seconds(low)} and {most} {all_of_it}, {units.shares(low, high, self.processor)}"
            return f"pooled memory would save {part}" + (f": firsttouch run {program}" if program else "")
        if self.facts["verdict"] == "perhaps":
            return f"pooled memory may save up to {most} {all_of_it}, {share}; firsttouch compare tells"
        return f"nothing to gain from pooled memory: at most {most} {all_of_it}, {share}"

    def gaining_lines(self) -> Table:
        """Return the lines that would gain most."""
        from firsttouch.tools.measuring.report import Table

        least = 0.001 * self.processor
        gaining = sorted((line for line in self.lines if line.avoidable > least), key=lambda line: -line.avoidable)
        table = Table("", ("line", "blocks", "bytes", "would save", "of the time"))
        for line in gaining[:_SHOWN]:
            saved, part = units.seconds(line.avoidable), units.share(line.avoidable, self.processor)
            line.add_to(table, f"{line.count:,}", units.size(line.bytes), saved, part)
        return table


def summarize(file: str) -> Summary:
    """Read a trace, as much of it as there is.

    Raises :exc:`ValueError` if the file is not a trace, and :exc:`OSError` if it cannot be read.
    """
    facts = _firsttouch.trace_summary(file, True)
    lines = [Line(**each) for each in facts.pop("lines")]
    return Summary(facts, sorted(lines, key=lambda line: (-line.seconds, -line.bytes)))

"""A trace summarized by source line: allocations, and the estimated kernel time they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from firsttouch import _firsttouch
from firsttouch.tools.trace.prices import Prices

#: Size from which NumPy (numpy/_core/src/multiarray/alloc.c) requests huge pages, and the size of most of these.
_NUMPYS_HUGE, _HUGE = 4 << 20, 2 << 20
_NEVER = 2**64 - 1
#: Kernel time is counted in ticks; from this many seconds on it is reliable.
_TICKS = 0.25


@dataclass(frozen=True)
class Line:
    """A source line, with its blocks of 64 KiB or more; seconds are estimates, ``avoidable`` less than 0 a loss.

    ``fresh`` are those that the kernel would take for the fresh memory of a pool.
    """

    file: str
    line: int
    count: int
    bytes: int
    median_lifetime: float
    faults: float
    seconds: float
    avoidable: float
    fresh: float

    @property
    def place(self) -> str:
        """File and line, or what stands for them."""
        return f"{self.file}:{self.line}" if self.file else "(no Python code)"


@dataclass(frozen=True)
class Summary:
    """A whole trace: ``facts`` as in its file, and its lines, most expensive first."""

    facts: Mapping[str, Any]
    lines: list[Line]
    small_blocks: int
    small_bytes: int
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
    def seconds(self) -> float:
        """Estimated seconds in the kernel for large blocks."""
        return sum(line.seconds for line in self.lines)

    @property
    def avoidable(self) -> float:
        """The estimated seconds that a pool would have saved; less than 0 if it would have cost more."""
        return sum(line.avoidable for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            **self.facts,
            "wall": self.wall,
            "waited": self.waited,
            "processor": self.processor,
            "kernel_seconds": self.seconds,
            "avoidable_seconds": self.avoidable,
            "small_blocks": self.small_blocks,
            "small_bytes": self.small_bytes,
            "prices": asdict(self.prices),
            "lines": [asdict(line) for line in self.lines],
        }


def summarize(file: str, prices: Prices, incomplete: bool = False) -> Summary:
    """Read a trace, and repeat its requests on a pool.

    Raises :exc:`ValueError` if the file is not a trace, or is incomplete, and :exc:`OSError` if it cannot be read.
    """
    facts = _firsttouch.trace_survey(file, incomplete)
    found, blocks, size = _firsttouch.trace_summary(file, incomplete, _huge_from(facts["facts"]))
    bound = _bound(facts, found, prices)
    lines = []
    for each in found:
        seconds, fresh = _price(each, prices) * bound, _on_a_pool(each, prices) * bound
        cleared = (each["cleared_bytes"] - each["pooled_cleared_bytes"]) * prices.clear * bound
        lines.append(
            Line(
                each["file"],
                each["line"],
                each["count"],
                each["bytes"],
                each["median_lifetime"],
                each["faults_small"] + each["faults_huge"],
                seconds,
                seconds - fresh + cleared,
                fresh,
            )
        )
    lines.sort(key=lambda line: (-line.seconds, -line.bytes))
    return Summary(facts, lines, blocks, size, prices)


def _price(each: Mapping[str, Any], prices: Prices) -> float:
    """Return the kernel seconds that a line's arrays cost."""
    return prices.of(each["faults_small"], each["faults_huge"], each["faults_mapped"])


def _on_a_pool(each: Mapping[str, Any], prices: Prices) -> float:
    """Return the kernel seconds that a line's arrays cost on a pool: for fresh memory and purges."""
    small = each["pooled_small_bytes"] / prices.page
    huge = each["pooled_huge_bytes"] / (prices.huge_page or prices.page)
    return prices.of(small, huge, each["pooled_purges"])


def _huge_from(facts: Mapping[str, str]) -> int:
    """Return the block size from which huge pages were used, according to the run's settings."""
    if facts.get("thp") not in ("always", "madvise"):
        return _NEVER
    if facts["thp"] == "always":
        return _HUGE
    return _NUMPYS_HUGE if facts.get("allocator") == "numpy_default()" else _HUGE


def _bound(facts: Mapping[str, Any], found: list[dict[str, Any]], prices: Prices) -> float:
    """Bound the cost of faults by all the time that the program spent in the kernel.

    That is counted in ticks, which says nothing of a short run; then the bound is all its processor time or, if it was
    killed, the duration of the trace.
    """
    user, kernel = (float(facts["facts"].get(name) or 0) for name in ("user", "kernel"))
    most = kernel if kernel >= _TICKS else user + kernel or float(facts["seconds"])
    estimated = sum(_price(each, prices) for each in found)
    return min(1.0, most / estimated) if most and estimated else 1.0

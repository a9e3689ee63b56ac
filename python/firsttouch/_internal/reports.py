"""Statistics of allocators, and the description of a failed request."""

from __future__ import annotations

from typing import NamedTuple

from firsttouch import _firsttouch
from firsttouch._internal.resolve import chosen
from firsttouch.custom import AllocatorLike


class Failure(NamedTuple):
    """A failed request. ``str()`` says what was asked, what was available, and which limit was exceeded."""

    asked: int
    """Bytes asked for."""
    limit: str
    """The limit's name, as one looks it up: ``RLIMIT_AS``, ``vm.overcommit_memory=2``, ..."""
    reason: str
    """The whole sentence."""

    def __str__(self) -> str:
        return self.reason


class Stats(NamedTuple):
    """Counts of an allocator, in bytes unless said; the names are jemalloc's where it has them."""

    in_use: int
    """Asked for by living blocks."""
    active: int
    """Of the spans that hold living blocks."""
    idle: int
    """Kept for the next request; may be resident."""
    mapped: int
    """Address space that is opened."""
    retained: int
    """Address space that is opened with nothing behind it."""
    peak_in_use: int
    """The most that was in use at once (to 1 MiB for each processor)."""
    peak_active: int
    """The most that was active at once (likewise)."""
    peak_held: int
    """The most that was active and idle together."""
    blocks: int
    """Number of living blocks."""
    allocations: int
    """Number of requests served."""
    recycled: int
    """Number of these served wholly from kept memory."""
    allocated_bytes: int
    """Asked for by all requests served."""
    recycled_bytes: int
    """Of the spans served, the part that was kept memory."""
    first_touched_bytes: int
    """Of the spans served, the part that the kernel has to make real."""
    first_touched_small_bytes: int
    """The same in base pages."""
    first_touched_huge_bytes: int
    """The same where huge pages were asked for."""
    purged_bytes: int
    """Given back to the operating system."""
    failures: int
    """Number of requests that failed."""
    small_limit: int
    """Requests below this many bytes go to NumPy's own allocator."""

    def as_dict(self) -> dict[str, int]:
        """The counts as a dict, for JSON and tables."""
        return self._asdict()


def stats(allocator: AllocatorLike | None = None) -> Stats:
    """What ``allocator`` holds and did; ``None`` is the installed one, or the process's own pool.

    Zeros where it keeps no count.
    """
    return Stats(**_firsttouch.stats(chosen(allocator, "stats()")))

"""Statistics of allocators, and the description of a failed request."""

from typing import Literal, NamedTuple

from firsttouch import _firsttouch
from firsttouch._internal import tables, units
from firsttouch._internal.resolve import chosen
from firsttouch.custom import AllocatorLike


class Failure(NamedTuple):
    """A request that could not be served; ``str`` of it is the reason.

    See Also
    --------
    firsttouch.last_failure : Returns the last one.

    """

    asked: int
    """Bytes requested."""
    limit: str
    """Name of the limit that was exceeded: ``RLIMIT_AS``, ``vm.overcommit_memory=2``, ``limited``, ..."""
    reason: str
    """What was requested, what was available, and which limit was exceeded, in a sentence."""

    def __str__(self) -> str:
        return self.reason


class Stats(NamedTuple):
    """Statistics of an allocator, in bytes unless noted; named as in jemalloc where it has them.

    See Also
    --------
    firsttouch.stats : Returns them.

    """

    in_use: int
    """Requested by live blocks."""
    active: int
    """In spans that hold live blocks."""
    idle: int
    """Kept for the next request; may be resident."""
    mapped: int
    """Address space that is mapped."""
    retained: int
    """Address space that is mapped without memory behind it."""
    peak_in_use: int
    """Peak of `in_use`: exact for one thread, to 1 MiB per processor for several."""
    peak_active: int
    """Peak of `active`, likewise."""
    peak_held: int
    """Peak of `active` and `idle` together."""
    blocks: int
    """Number of live blocks."""
    allocations: int
    """Number of requests served."""
    recycled: int
    """Number of requests served entirely from idle memory."""
    allocated_bytes: int
    """Requested by all requests served."""
    recycled_bytes: int
    """Part of the spans served that was idle memory."""
    first_touched_bytes: int
    """Part of the spans served that was fresh: the kernel faults in what of it is touched."""
    first_touched_small_bytes: int
    """Part of `first_touched_bytes` on base pages."""
    first_touched_huge_bytes: int
    """Part of `first_touched_bytes` where huge pages were requested."""
    purged_bytes: int
    """Returned to the operating system."""
    refaulted_bytes: int
    """Part of `purged_bytes` that was needed again, and faulted in again: it was returned too early."""
    failures: int
    """Number of requests that failed."""
    small_limit: int
    """Size below which pools, and what is installed, leave NumPy's arrays to its own allocator, and count none."""

    def as_dict(self) -> dict[str, int]:
        """Return the statistics as a dictionary.

        Returns
        -------
        dict of str to int

        Examples
        --------
        >>> ft.stats().as_dict()["small_limit"]
        16384

        """
        return self._asdict()

    def _repr_html_(self) -> str:
        return tables.html("statistics", self._rows())

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return each figure's name, itself for people, and itself in bytes or counted."""
        counts = ("blocks", "allocations", "recycled", "failures")
        return [
            (name, f"{value:,}" if name in counts else units.size(value), "" if name in counts else f"{value:,}")
            for name, value in self._asdict().items()
        ]


def stats(allocator: AllocatorLike | Literal["process"] | None = "process") -> Stats:
    """Return an allocator's statistics.

    Parameters
    ----------
    allocator : AllocatorLike or "process", optional
        Allocator to ask. The default is the installed one or, if none is, the process's own pool; ``None`` is the
        current allocator.

    Returns
    -------
    firsttouch.process.Stats
        All zero but `small_limit` if the allocator keeps no statistics.

    Raises
    ------
    TypeError, ValueError
        If `allocator` is not an allocator.

    See Also
    --------
    measure : Figures of a block of code.
    tracked : An allocator that counts exactly.

    Examples
    --------
    >>> pool = ft.pool()
    >>> a = pool.zeros((1000, 1000))
    >>> ft.stats(pool).in_use
    8000000

    """
    return Stats(**_firsttouch.stats(chosen(allocator, "stats()")))

"""What the operating system reports about this process, counted from its start.

An exec keeps the counters of the process, and a fork those of the pool, so both need a starting point.
"""

import os
import time

from _firsttouch_start import library, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

resource: "Any"
try:
    resource = library.borrow("resource")
except ImportError:  # not a Unix
    resource = None

_COUNTS = ("wall", "waited", "user", "kernel", "minor_faults", "major_faults", "children")
_start: "dict[str, float]" = dict.fromkeys(_COUNTS, 0.0)
_inherited: "dict[str, int]" = {}
_before_fork: "dict[str, int]" = {}

#: The statistics of the pool that only grow, so that a worker's own share is a difference.
_GROWING = (
    "allocations",
    "recycled",
    "allocated_bytes",
    "recycled_bytes",
    "first_touched_bytes",
    "first_touched_small_bytes",
    "first_touched_huge_bytes",
    "purged_bytes",
    "refaulted_bytes",
    "failures",
)


def restart() -> None:
    """Reset the starting point: at the start of the interpreter, and in a child right after a fork."""
    global _inherited
    _start.update(_now())
    _inherited = dict(_before_fork)


def follow_forks() -> None:
    """Record, before each fork, the statistics of the pool that the child will inherit.

    Registered after the pool's own handlers, so that it runs before they acquire their locks.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_remember)


def _remember() -> None:
    try:
        _before_fork.update(_pool_totals())
    except Exception:  # a fork must go on; the child's report then includes its parent's share
        _before_fork.clear()


def process() -> "dict[str, float]":
    """Return the seconds and faults since the start.

    During `waited`, a part of `wall`, others had the processor. `children` is the processor time of child processes
    that have ended and were waited for.
    """
    return {name: value - _start[name] for name, value in _now().items()}


def pool() -> "dict[str, int] | None":
    """Return the statistics of the pool, without what a fork inherited; None without a pool."""
    totals = _pool_totals()
    for name in _GROWING:
        if name in totals:
            totals[name] -= _inherited.get(name, 0)
    return totals or None


def _pool_totals() -> "dict[str, int]":
    return state.native.stats(state.allocator) if state.installed else {}


def _now() -> "dict[str, float]":
    if resource is None:
        used = (time.process_time(), 0.0, 0, 0, 0.0)
    else:
        usage, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        children = others.ru_utime + others.ru_stime
        used = (usage.ru_utime, usage.ru_stime, usage.ru_minflt, usage.ru_majflt, children)
    return dict(zip(_COUNTS, (time.perf_counter(), _waited(), *used), strict=True))


def _waited() -> float:
    """Return the seconds in which the main thread could have run, and waited for a processor; 0 where unknown."""
    try:
        with open("/proc/self/schedstat", "rb") as counts:
            return int(counts.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # no Linux, or a kernel without these counts
        return 0.0


def resident() -> "dict[str, int | None]":
    """Return the resident bytes now and at the peak of this program; Linux counts both per address space."""
    found: dict[str, int | None] = {"now": None, "peak": None}
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                key, _, value = line.partition(":")
                if key in ("VmRSS", "VmHWM"):
                    found["now" if key == "VmRSS" else "peak"] = int(value.split()[0]) * 1024
    except (OSError, ValueError):
        pass
    return found

"""Copies between NUMA nodes: of arrays that were never touched, and of the same arrays once they are resident."""

from __future__ import annotations

import time
from functools import cache
from statistics import median as middle
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch import _firsttouch
from firsttouch.tools.bench.tasks.faults import thread_faults

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
COPIES = (("b0", "a0"), ("b1", "a0"), ("b1", "a1"), ("b0", "a1"))  # target and source, in the slides' order
WARM = 5


@cache
def memory(node: int) -> tuple[Any, bool]:
    """Return an allocator of small pages on a node, and whether it is bound; unbound pages if that is not permitted."""
    try:
        allocator = ft.numa(node, strict=True)
        allocator.empty(1 << 16)
    except (MemoryError, OSError, ValueError):
        return ft.pages(), False
    return allocator, True


def fresh(node: int, nbytes: int) -> Bytes:
    """Return an array on a node without any resident page."""
    array: Bytes = memory(node)[0].empty(nbytes, np.uint8)
    return array


def timed(target: Bytes, source: Bytes) -> tuple[float, int]:
    """Return the seconds and page faults of one copy."""
    before, start = thread_faults(), time.perf_counter()
    np.copyto(target, source)
    took = time.perf_counter() - start
    return took, thread_faults() - before


def misplaced(array: Bytes, node: int) -> int:
    """Return the number of the array's pages that are not on its node."""
    return sum(found != node for found in _firsttouch.nodes_of_range(array.ctypes.data, array.nbytes))


def in_a_row(cpu: int, near: int, far: int, nbytes: int) -> dict[str, float]:
    """Time the slides' four copies, each array as new as on the slides; then the same four again."""
    reply: dict[str, float] = {}
    with ft.run_on(cpu):
        arrays = {f"{letter}{at}": fresh(node, nbytes) for at, node in enumerate((near, far)) for letter in "ab"}
        for when in ("cold", "again"):
            for target, source in COPIES:
                took, count = timed(arrays[target], arrays[source])
                reply |= {f"{target} {source} {when}": took, f"{target} {source} {when} faults": count}
            if when == "cold":
                for array in arrays.values():
                    array.fill(1)
    return reply


def between(cpu: int, source: int, target: int, nbytes: int) -> dict[str, float]:
    """Time one copy of arrays that were never written, and several once both are resident (the median)."""
    with ft.run_on(cpu):
        a, b = fresh(source, nbytes), fresh(target, nbytes)
        cold, cold_faults = timed(b, a)
        a.fill(1)
        np.copyto(b, a)
        warm = [timed(b, a) for _ in range(WARM)]
        bound = memory(source)[1] and memory(target)[1]
        wrong = misplaced(a, source) + misplaced(b, target)
    return {
        "cold": cold,
        "cold faults": cold_faults,
        "warm": middle(took for took, _ in warm),
        "warm faults": sum(count for _, count in warm),
        "bound": bound,
        "misplaced": wrong,
    }

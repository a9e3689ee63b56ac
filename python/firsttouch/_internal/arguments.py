"""Types of arguments, and the bytes of an array."""

from typing import Literal, TypeAlias

import numpy as np

Size: TypeAlias = int | str
"""A size in bytes as a number, or text like ``"64 KiB"`` or ``"4 GB"``."""

Policy: TypeAlias = int | str
"""A NUMA node's number, or a policy such as ``"bind:0-1"`` or ``"interleave:all"``."""

Huge: TypeAlias = Literal[False] | str
"""``False``, ``"thp"``, or a size such as ``"2M"`` or ``"1G"``."""


def byte_range(caller: str, a: object) -> tuple[int, int]:
    """Return the address of the first byte, and the bytes up to the last."""
    if not isinstance(a, np.ndarray):
        raise TypeError(f"{caller} takes a NumPy array, not {type(a).__name__}: {a!r:.60}")
    if a.size == 0:
        return 0, 0
    low, high = np.lib.array_utils.byte_bounds(a)
    return low, high - low

"""A custom allocator in Python: arrays in memory that a forked child shares with its parent.

An object with `allocate` and `deallocate` can be used wherever an allocator is accepted, in constructors and in `use`.
"""

import ctypes
import mmap
import os
from collections.abc import Callable

import numpy as np

import firsttouch as ft


class Shared:
    """Anonymous mappings, one for each array. The parent reads what a child writes there."""

    def __init__(self) -> None:
        self.mappings: dict[int, tuple[mmap.mmap, object]] = {}

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:  # noqa: ARG002  # always zero: it is fresh
        """Return the address of `nbytes` bytes at a multiple of `alignment`."""
        mapping = mmap.mmap(-1, nbytes + alignment)
        start = ctypes.c_char.from_buffer(mapping)  # keeps the mapping open, and provides its address
        address = -(-ctypes.addressof(start) // alignment) * alignment
        self.mappings[address] = mapping, start
        return address

    def deallocate(self, address: int, nbytes: int) -> None:  # noqa: ARG002  # the mapping knows its size
        """Free what `allocate` returned."""
        mapping, start = self.mappings.pop(address)
        del start
        mapping.close()


def in_a_child(work: Callable[[], object]) -> None:
    """Call `work` in a forked child, and wait for its end."""
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        work()
        os._exit(0)


def main() -> None:
    """Fill two arrays in children."""
    shared = Shared()

    # A single array, by a constructor.
    squares = ft.zeros(10, np.int64, allocator=shared)

    in_a_child(lambda: np.square(np.arange(10), out=squares))
    print("a child wrote:", squares)

    # All arrays of a block, from unmodified NumPy code.
    with ft.use(shared):
        grid = np.zeros((1000, 1000))
    in_a_child(lambda: grid.fill(0.5))
    print("and the sum of its halves is", grid.sum())

    print("arrays in shared memory:", len(shared.mappings))


if __name__ == "__main__":
    main()

"""Custom scratch memory in Python: a `bytearray` that is filled from its start, and rewound to marks.

An object with `allocate`, `mark` and `rewind` can be used wherever a buffer is accepted. It is rewound only when no
array above the mark is live, so it needs no bookkeeping: an array that outlives its scope stays valid.
"""

import ctypes

import numpy as np

import firsttouch as ft


class Stack:
    """Memory from a bytearray."""

    def __init__(self, nbytes: int) -> None:
        self.storage = bytearray(nbytes)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.storage))
        self.top = self.most = 0

    def allocate(self, nbytes: int, alignment: int) -> int:
        """Return the address of `nbytes` bytes at a multiple of `alignment`; 0 if there is no room."""
        address = -(-(self.start + self.top) // alignment) * alignment
        end = address - self.start + nbytes
        if end > len(self.storage):
            return 0
        self.top = end
        self.most = max(self.most, end)
        return address

    def mark(self) -> int:
        """Return the number of bytes in use."""
        return self.top

    def rewind(self, mark: int) -> None:
        """Free the memory above `mark`."""
        self.top = mark


def main() -> None:
    """Show a block, a decorated function, and an array that does not fit."""
    stack = Stack(1 << 20)

    with ft.scratch(stack) as scope:
        inside = scope.ones(1000)
        inside += inside * 2  # a temporary on the stack, too
        print("the sum is", inside.sum(), "- and at least 16000 bytes are taken:", stack.top >= 16000)
        del inside
    print("taken after the block:", stack.top)

    @ft.scratch(stack)
    def normalized(x: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        centred = x - x.mean()
        return centred / centred.std()

    y = normalized(np.arange(10_000.0))
    print("mean and deviation:", round(y.mean(), 12), round(y.std(), 12), "- and taken:", stack.top)

    try:
        with ft.scratch(stack) as scope:
            scope.empty(1 << 20)
    except MemoryError as error:
        print("MemoryError:", "8388608" in str(error))


if __name__ == "__main__":
    main()

"""An allocator written in Python that several threads may call at once."""

from typing import Any

import numpy as np

import firsttouch as ft
from tests.free_threading.forks import UNFORKED


class Own:
    """Keeps the memory of each block in an array of NumPy's."""

    def __init__(self) -> None:
        self.kept: dict[int, Any] = {}

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        if nbytes % 11 == 5:
            raise MemoryError("not this many")  # comes out of the constructor that asked
        with ft.use(ft.numpy_default()):
            store = (np.zeros if zeroed else np.empty)(nbytes + alignment, np.uint8)
        address = -(-store.ctypes.data // alignment) * alignment
        with UNFORKED:
            self.kept[address] = store
        return address

    def deallocate(self, address: int, nbytes: int) -> None:
        with UNFORKED:
            del self.kept[address]

"""Custom scratch memory, written plainly."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import firsttouch as ft


@dataclass
class Bump:
    """A bump over one piece. It can't be hashed, and all are equal."""

    size: int = 1 << 20

    def __post_init__(self) -> None:
        with ft.use(ft.numpy_default()):
            self.store = np.zeros(self.size, np.uint8)
        self.top = 0

    def allocate(self, nbytes: int, alignment: int) -> Any:
        base = self.store.ctypes.data
        at = -(-(base + self.top) // alignment) * alignment
        if at + nbytes > base + self.size:
            return None
        self.top = at + nbytes - base
        return at

    def mark(self) -> int:
        return self.top

    def rewind(self, mark: int) -> None:
        assert mark <= self.top
        self.top = mark

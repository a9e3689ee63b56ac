"""What arrays should contain: a fixed sequence of bytes, from a place that each array has of its own."""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import firsttouch as ft

PERIOD = 1_000_003
"""Bytes after which the sequence begins again: a prime, so that no page looks like another one."""
_TWICE = random.Random(7).randbytes(PERIOD) * 2
_HELD = ctypes.c_char_p(_TWICE)
_SEQUENCE = ctypes.cast(_HELD, ctypes.c_void_p).value or 0
_C = ctypes.PyDLL(None)
_compare, _copy = _C.memcmp, _C.memmove
_compare.argtypes = _copy.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)
_copy.restype = ctypes.c_void_p


@dataclass
class Filled:
    """An array, the place from which its bytes come, and how it was made, for messages."""

    array: np.ndarray[Any, Any]
    place: int
    made: str
    address: int = field(init=False)
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.address = self.array.__array_interface__["data"][0]
        self.nbytes = self.array.nbytes
        self.place %= PERIOD

    def fill(self) -> None:
        for start in range(0, self.nbytes, PERIOD):
            _copy(self.address + start, _SEQUENCE + self.place, min(PERIOD, self.nbytes - start))

    def check(self) -> None:
        """Compare all bytes; without memory of its own, which would disturb what is tested."""
        if self.nbytes > PERIOD or _compare(self.address, _SEQUENCE + self.place, self.nbytes):
            self._look()

    def _look(self) -> None:
        for start in range(0, self.nbytes, PERIOD):
            length = min(PERIOD, self.nbytes - start)
            if _compare(self.address + start, _SEQUENCE + self.place, length):
                raise AssertionError(self._wrong(start, length))

    def _wrong(self, start: int, length: int) -> str:
        found = ctypes.string_at(self.address + start, length)
        expected = _TWICE[self.place : self.place + length]
        first = next(i for i in range(length) if found[i] != expected[i])
        count = sum(one != other for one, other in zip(found, expected, strict=True))
        whose = _TWICE.find(found[first : first + 16])
        return (
            f"byte {start + first} of {self.nbytes} at {self.address:#x} is {found[first]}, not {expected[first]} "
            f"({count} of {length} are wrong; from place {whose - first} instead of {self.place}) in an array of "
            f"{ft.get_allocator(self.array)} made by {self.made}"
        )

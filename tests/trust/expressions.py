"""Random allocators: every source, under adaptors in any order."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from random import Random
from typing import Any

import firsttouch as ft
from tests.callbacks import Callbacks

SOURCES = (
    "pool()",
    "pool(decay=0)",
    "pool(decay=None)",
    "pool(decay=0.2, max_idle='4 MiB')",
    "pool(pages())",
    "pool(numa('local'))",
    "pages()",
    "pages(huge='thp')",
    "pages(huge='2M')",
    "pages(populate=True)",
    "pages(huge='thp', populate=2)",
    "pages(numa=0)",
    "pages(numa='interleave:all', populate=True)",
    "numa(0)",
    "malloc()",
    "calloc()",
    "aligned(64)",
    "aligned(4096)",
    "aligned('2 MiB')",
    "mimalloc()",
    "jemalloc()",
    "numpy_default()",
)
ADAPTORS = (
    "limited({}, '2 GiB')",
    "filled(guarded(), on_free=3)",
    "limited(guarded(side='before', keep='1 MiB'), '1 GiB')",
    "filled({})",
    "filled({}, on_allocate=None, on_free=90)",
    "pool({})",
    "pool({}, decay=0)",
    "pool({}, decay=0.1, max_idle='1 MiB')",
)
REFUSING = ("limited({}, '3 MiB')", "filled(limited({}, '9 MiB'))", "limited({}, '2 MiB')")
"""Adaptors under which requests fail, for programs that expect it."""
INSTALLABLE = tuple(text for text in SOURCES if text.startswith(("pool", "pages", "mimalloc", "jemalloc", "numa")))


def expression(random: Random, installable: bool = False, refusing: bool = False) -> str:
    """Return a random expression; an installable one stands on a source that finds its blocks."""
    text = random.choice(INSTALLABLE if installable else SOURCES)
    for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))):
        if text == "numpy_default()":
            break
        text = random.choice(REFUSING if refusing and random.random() < 0.2 else ADAPTORS).format(text)
    return text


def stacked(allocator: Any, random: Random) -> Any:
    """Return an adaptor on an allocator that is an object."""
    adaptor = random.choice((ft.pool, ft.filled))
    return adaptor(allocator)


UNFORKED = threading.RLock()
"""Whoever forks holds it: without the GIL a dictionary has a lock of its own, which a child inherits as it was. A
thread may take it twice, as a collection can free arrays meanwhile."""
if sys.platform == "linux":
    os.register_at_fork(before=UNFORKED.acquire, after_in_parent=UNFORKED.release, after_in_child=UNFORKED.release)


class Own:
    """An allocator written in Python."""

    def __init__(self, shown: str = "") -> None:
        self.kept: dict[int, Any] = {}
        self.shown = shown

    def __repr__(self) -> str:
        return self.shown or super().__repr__()

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        memory = ctypes.create_string_buffer(nbytes + alignment)
        address = -(-ctypes.addressof(memory) // alignment) * alignment
        with UNFORKED:
            self.kept[address] = memory
        return address

    def deallocate(self, address: int, nbytes: int) -> None:
        with UNFORKED:
            del self.kept[address]


_callbacks = Callbacks()


def functions() -> Any:
    """Return an allocator on callbacks, which need the GIL in every thread that frees."""
    return _callbacks.allocator()

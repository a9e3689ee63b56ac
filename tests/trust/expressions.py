"""Random allocators: every source, under adaptors in any order."""

from __future__ import annotations

import ctypes
from random import Random
from typing import Any

SOURCES = (
    "pool()",
    "pool(decay=0)",
    "pool(decay=None)",
    "pool(decay=0.2, max_idle='4 MiB')",
    "pool(pages())",
    "pool(fault_ahead=True)",
    "pool(pages(), fault_ahead=True)",
    "pages()",
    "pages(huge='thp')",
    "pages(populate=True)",
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
    "tracked({})",
    "tracked({}, lines=True)",
    "limited({}, '2 GiB')",
    "guarded({})",
    "guarded({}, side='before', keep='1 MiB')",
    "filled({})",
    "filled({}, on_allocate=None, on_free=90)",
    "pool({})",
    "pool({}, decay=0)",
)


def expression(random: Random, installable: bool = False) -> str:
    """Return a random expression; an installable one is a source that finds its blocks, under at most two adaptors."""
    if installable:
        sources = [text for text in SOURCES if text.startswith(("pool", "pages", "mimalloc", "jemalloc"))]
        text = random.choice(sources)
    else:
        text = random.choice(SOURCES)
    for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))):
        adaptor = random.choice(ADAPTORS)
        if text == "numpy_default()":
            break
        text = adaptor.format(text)
    return text


class Own:
    """An allocator written in Python."""

    def __init__(self) -> None:
        self.kept: dict[int, Any] = {}

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        memory = ctypes.create_string_buffer(nbytes + alignment)
        address = -(-ctypes.addressof(memory) // alignment) * alignment
        self.kept[address] = memory
        return address

    def deallocate(self, address: int, nbytes: int) -> None:
        del self.kept[address]

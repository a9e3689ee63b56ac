"""Steps of CPython's raw domain: what others put before it and take away again, and memory that comes from there."""

from __future__ import annotations

import ctypes
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from random import Random
from typing import Any

import numpy as np

from tests.probe import in_interpreter
from tests.trust.content import Filled
from tests.trust.world import World


@contextmanager
def _another() -> Iterator[None]:
    """A library or plugin that wraps the domain: CPython's functions and ours take nothing from the context."""
    before = (ctypes.c_void_p * 5)()  # of which the first is the context
    ctypes.pythonapi.PyMem_GetAllocator(0, ctypes.byref(before))
    own = type(before)(before[0] or 1 << 30, *before[1:])
    ctypes.pythonapi.PyMem_SetAllocator(0, ctypes.byref(own))
    yield
    ctypes.pythonapi.PyMem_SetAllocator(0, ctypes.byref(before))


@contextmanager
def _traced() -> Iterator[None]:
    tracemalloc.start(2)
    yield
    tracemalloc.stop()


HOOKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {"another library": _another, "tracemalloc": _traced}
with suppress(ImportError):
    from memray import FileDestination, Tracker

    HOOKS["memray"] = lambda: Tracker(
        destination=FileDestination("/dev/null", overwrite=True), trace_python_allocators=True
    )
STANDING: dict[str, AbstractContextManager[Any]] = {}
"""What stands before the domain now, the last that came before all others."""


def hooked(world: World, random: Random) -> None:
    """Something comes to stand before the domain, or the last that came goes."""
    absent = [name for name in HOOKS if name not in STANDING]
    if STANDING and (not absent or random.random() < 0.6):
        STANDING.popitem()[1].__exit__(None, None, None)
    elif not world.cramped:
        begun = HOOKS[name := random.choice(absent)]()
        begun.__enter__()
        STANDING[name] = begun


class Bytes(bytearray):
    """Memory of CPython's own objects, which comes from the raw domain where it is large."""

    def resize(self, nbytes: int) -> None:
        self[nbytes:] = bytes(max(nbytes - len(self), 0))


_KINDS = ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE
_REALLOC = [
    way(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawRealloc", ctypes.pythonapi)) for way in _KINDS
]
_FREE = [way(None, ctypes.c_void_p)(("PyMem_RawFree", ctypes.pythonapi)) for way in _KINDS]
"""Without the GIL, and with it. Who stands there has locks, which a child that is forked meanwhile would inherit."""


class Block:
    """Memory of the raw domain, as C code has it."""

    address, nbytes = None, 0

    def resize(self, nbytes: int) -> None:
        address = _REALLOC[bool(STANDING)](self.address, nbytes)
        if not address:
            raise MemoryError(f"PyMem_RawRealloc from {self.nbytes} to {nbytes} bytes")
        self.address, self.nbytes = address, nbytes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (self.address, False), "shape": (self.nbytes,), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        _FREE[bool(STANDING)](self.address)


def buffer(world: World, random: Random) -> None:
    """Memory grows and shrinks, over the border; a view of it stays."""
    memory, array, place = random.choice((Bytes, Block))(), np.empty(0, "u1"), random.randrange(1 << 30)
    for _ in range(random.choice((1, 2, 2, 5))):
        array, before = array[:0].copy(), array.size  # while there is a view, a bytearray cannot be resized
        memory.resize(int(2 ** random.uniform(13, 18)) if random.random() < 0.5 else world.size(random))
        array, made = np.asarray(memory), f"{type(memory).__name__} that had {before} bytes"
        Filled(array[:before], place, made).check()
        Filled(array, place, made).fill()
    world.keep(array, random, made)


_INNER = """
kept = [b"-"] * 20
for turn in range(200):
    size, mark = (turn * 7919 + {}) ** 2 % (1 << turn % 21) + 1, bytes([turn])
    piece = kept[turn % 20] = bytearray(mark) * size
    del piece[size // 2 :]
    piece += mark * size
    assert all(piece.count(piece[:1]) == len(piece) for piece in kept)
    numbers = [turn] * (size // 8)
    assert numbers.count(turn) == size // 8
"""


def interpreters(world: World, random: Random) -> None:
    """Other interpreters of the process, each in a thread, end with memory in use, while steps run here."""
    if world.tolerant or STANDING:
        return
    kinds = [random.choice(("isolated", "legacy")) for _ in range(2)]
    with ThreadPoolExecutor(len(kinds)) as pool:
        others = [pool.submit(in_interpreter, kind, _INNER.format(random.randrange(1 << 20))) for kind in kinds]
        world.some(random, 10)
    assert not any(said := [other.result() for other in others]), f"in other interpreters: {said}"

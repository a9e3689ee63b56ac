"""Searches for the arrays on given memory, through the objects that refer to them."""

import bisect
import gc
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np


class Found(NamedTuple):
    """The known attributes of an array."""

    shape: tuple[int, ...]
    dtype: str


class _Ranges:
    """Blocks of memory, and the largest array that was found in each."""

    def __init__(self, blocks: Iterable[tuple[int, int]]) -> None:
        self.blocks = sorted(blocks)
        self.found: dict[int, tuple[int, Found]] = {}

    def note(self, array: np.ndarray[Any, Any]) -> None:
        address = array.ctypes.data
        at = bisect.bisect_right(self.blocks, (address, 1 << 64)) - 1
        if at < 0 or address >= sum(self.blocks[at]):
            return
        start = self.blocks[at][0]
        if start not in self.found or self.found[start][0] < array.nbytes:
            self.found[start] = array.nbytes, Found(array.shape, str(array.dtype))


def anywhere(blocks: Iterable[tuple[int, int]]) -> dict[int, Found]:
    """Return the arrays found in blocks of memory, `(address, nbytes)`, by the blocks' addresses.

    Searches all objects that the garbage collector tracks, which takes some tens of milliseconds.
    """
    return _found(gc.get_objects(), blocks)


def in_traceback(traceback: TracebackType | None, blocks: Iterable[tuple[int, int]]) -> dict[int, Found]:
    """Search the local variables of frames that an exception left, which is cheap."""
    roots: list[Any] = []
    while traceback is not None:
        roots.append(traceback.tb_frame)  # a running frame shows nothing, and is not disturbed
        roots.extend(each for each in gc.get_referents(traceback.tb_frame) if type(each) in (dict, list, tuple))
        traceback = traceback.tb_next
    return _found(roots, blocks)


def _found(roots: Iterable[Any], blocks: Iterable[tuple[int, int]]) -> dict[int, Found]:
    ranges = _Ranges(blocks)
    for array in _arrays(roots):
        ranges.note(array)
    return {address: found for address, (_, found) in ranges.found.items()}


def _arrays(roots: Iterable[Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays that each of `roots` holds, itself or through containers that are not tracked."""
    seen: set[int] = set()
    for root in roots:
        ahead = gc.get_referents(root)
        while ahead:
            thing = ahead.pop()
            if issubclass(type(thing), np.ndarray):  # does not call objects that pretend to be of another class
                if id(thing) in seen:
                    continue
                seen.add(id(thing))
                yield thing
                ahead.append(thing.base)
                if thing.dtype == object:
                    ahead.extend(thing.ravel(order="K").tolist())
            elif type(thing) in (dict, tuple) and not gc.is_tracked(thing):
                ahead.extend(gc.get_referents(thing))

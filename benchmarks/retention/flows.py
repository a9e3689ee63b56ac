"""What a trace says of large blocks, without the rest; the format is described in `firsttouch-trace`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: Smaller blocks are none of a pool's.
SMALL_LIMIT = 16 << 10
#: From these sizes on a block lies on huge pages: of any memory, and of zeroed memory.
HUGE_MIN, HUGE_MIN_ZEROED = 1 << 20, 4 << 20

_MAGIC = b"\x89FTRC\r\n\x1a"
_ALLOCATE, _FREE, _RESIZE, _THREAD, _SITE, _LIVE, _END = range(1, 8)
_KIND, _TIMED, _ZEROED, _DETAILED = 7, 8, 16, 32


@dataclass(frozen=True, slots=True)
class Flow:
    """A block that is taken from a region, or given back to it where its size is negative."""

    micros: int
    region: int
    size: int
    block: int


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, len(_MAGIC)

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def skip_string(self) -> None:
        length = self.number()
        self.at += length


def flows(data: bytes) -> Iterator[Flow]:
    """Return the flows of a whole trace, in its order; a block that is resized is given back and taken."""
    if not data.startswith(_MAGIC):
        raise ValueError("not a trace")
    cursor = _Cursor(data)
    if cursor.number() != 1:
        raise ValueError("a trace of another version")
    for _ in range(2 * cursor.number()):
        cursor.skip_string()
    sizes: list[tuple[int, bool]] = []
    free: list[int] = []
    micros = 0
    while (tag := cursor.number()) & _KIND != _END:
        kind, detailed = tag & _KIND, bool(tag & _DETAILED)
        if tag & _TIMED:
            micros += cursor.number()
        if kind in (_THREAD, _SITE):
            cursor.number()
            if kind == _SITE:
                cursor.skip_string()
            continue
        if kind == _ALLOCATE:
            new = (cursor.number(), bool(tag & _ZEROED))
            operands = 3 if detailed else 0
            block = free.pop() if free else len(sizes)
            sizes[block : block + 1] = [new]
        else:
            block = cursor.number()
            operands = int(kind == _LIVE or (kind == _FREE and detailed))
            if kind != _LIVE:
                yield from _flow(micros, block, *sizes[block], -1)
            if kind == _FREE:
                free.append(block)
            if kind == _RESIZE:
                sizes[block] = new = (cursor.number(), False)
        for _ in range(operands):
            cursor.number()
        if kind in (_ALLOCATE, _RESIZE):
            yield from _flow(micros, block, *new, 1)


def _flow(micros: int, block: int, size: int, zeroed: bool, sign: int) -> Iterator[Flow]:
    if size >= SMALL_LIMIT:
        yield Flow(micros, int(size >= (HUGE_MIN_ZEROED if zeroed else HUGE_MIN)), sign * size, block)

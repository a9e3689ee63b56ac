"""Loops in the middle of a chunk, and loops whose iterations extend a little into the next one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

KIB = 1 << 10
CHUNK = 1024 * KIB
#: The bytes that an iteration takes from the buffer.
TURN = 96 * KIB
#: Bytes taken before the loop: with an iteration's, they end in the middle of the chunk, or a little behind its end.
BEFORE = {"middle": CHUNK // 2, "edge": CHUNK - TURN // 2}


def filled(scope: Any, nbytes: int) -> list[Any]:
    """Return arrays of this total size, each small enough to be bump-allocated."""
    sizes = [64 * KIB] * (nbytes // (64 * KIB)) + [nbytes % (64 * KIB)]
    return [scope.empty(size, np.uint8) for size in sizes if size]


def blocks(where: str, turns: int) -> float:
    """Return seconds per iteration of a scope and an unused array."""
    import firsttouch as ft

    buffer = ft.ScratchBuffer(CHUNK)
    with ft.scratch(buffer) as outer:
        kept = filled(outer, BEFORE[where])
        start = time.perf_counter()
        for _ in range(turns):
            with ft.scratch(buffer) as scope:
                scope.empty(TURN, np.uint8)
        took = time.perf_counter() - start
        del kept
    return took / turns


def expression(where: str, turns: int) -> float:
    """Return seconds per call of a decorated function, whose three arrays together are as large as an iteration's."""
    import firsttouch as ft

    buffer = ft.ScratchBuffer(CHUNK)
    x = np.full(TURN // 3 // 8, 0.5)

    @ft.scratch(buffer)
    def turn() -> None:
        y = x * 0.5
        z = y + 1.0
        w = y * z
        del w, z, y

    with ft.scratch(buffer) as outer:
        kept = filled(outer, BEFORE[where])
        start = time.perf_counter()
        for _ in range(turns):
            turn()
        took = time.perf_counter() - start
        del kept
    return took / turns


def calls(where: str, turns: int) -> float:
    """Return seconds per call without an enclosing scope: each call's eleven arrays need half a chunk, or a little more
    than one.
    """
    import firsttouch as ft

    buffer = ft.ScratchBuffer(CHUNK)
    size = TURN // 2 if where == "middle" else TURN

    @ft.scratch(buffer)
    def call() -> None:
        kept = [np.empty(size, np.uint8) for _ in range(11)]
        del kept

    start = time.perf_counter()
    for _ in range(turns):
        call()
    return (time.perf_counter() - start) / turns


LOOPS = {
    "a scope and an array": blocks,
    "a decorated expression": expression,
    "calls of their own, eleven arrays each": calls,
}
TURNS = 2000


def measure() -> dict[str, float]:
    """Return seconds per iteration of each loop in both places, the fastest of some short alternating runs."""
    reply: dict[str, float] = {}
    for name, loop in LOOPS.items():
        for turn in range(6):
            for where in BEFORE if turn % 2 else reversed(BEFORE):
                key = f"{name} {where}"
                reply[key] = min(reply.get(key, 1.0), loop(where, TURNS))
        reply[f"{name} again"] = min(loop("middle", TURNS) for _ in range(6))
    return reply

"""Long loops inside one scope: the peak that its buffer held, compared with the peak of what was live in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Look = Callable[[], None]


def updates(nbytes: int, turns: int, look: Look) -> None:
    """Compute `x = x * 0.5 + 1` repeatedly: the old x, and one or two arrays made from it, are live at once."""
    x = np.ones(nbytes // 8)
    for _ in range(turns):
        x = x * 0.5 + 1
        look()


def rebinding(nbytes: int, turns: int, look: Look) -> None:
    """Rebind five names in every iteration: all arrays of an iteration are live at once."""
    x = np.ones(nbytes // 8)
    for _ in range(turns):
        a = x + 1.0
        b = a * 2.0
        c = np.sqrt(b)
        d = c - a
        _ = d * d
        look()


def uneven(nbytes: int, turns: int, look: Look) -> None:
    """Use three names, and sizes that change between a quarter and the whole."""
    sizes = np.random.default_rng(0).integers(nbytes // 32, nbytes // 8, size=64).tolist()
    for turn in range(turns):
        a = np.ones(sizes[turn % 64])
        b = a * 2.0
        _ = np.sqrt(b)
        look()


def keeping(nbytes: int, turns: int, look: Look) -> None:
    """Keep one array of an eighth of the size in every hundredth iteration."""
    kept: list[Array] = []
    for turn in range(turns):
        a = np.ones(nbytes // 8)
        b = a * 2.0
        part = b[: nbytes // 64] + 1.0
        if turn % 100 == 0:
            kept.append(part)
        look()


PROGRAMS: dict[str, Callable[[int, int, Look], None]] = {
    "`x = x * 0.5 + 1`": updates,
    "five names, rebound": rebinding,
    "sizes that change": uneven,
    "a small array kept in every hundredth iteration": keeping,
}


def measure(program: str, nbytes: int, turns: int) -> dict[str, float]:
    """Return the peak of the live bytes, the peak of those held (checked in every iteration), and the bytes that are
    left.
    """
    import firsttouch as ft

    buffer = ft.ScratchBuffer()
    held = 0

    def look() -> None:
        nonlocal held
        held = max(held, buffer.capacity)

    with ft.scratch(buffer):
        PROGRAMS[program](nbytes, turns, look)
        lived = buffer.peak
    return {"lived": lived, "held": held, "left": buffer.used}

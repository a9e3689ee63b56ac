"""The memory that a scope holds over thousands of iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measuring import Plan, Section, Verdict, collect
from firsttouch.tools.bench.common import KIB, MIB, name
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


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


# ---- The experiment


TURNS = 10_000
CHUNK = 1 * MIB
SIZES = (2 * KIB, 16 * KIB, 128 * KIB, 512 * KIB)
#: The bound on the memory held, as a multiple of the peak of what was live.
BARS = dict(zip(PROGRAMS, (4, 2, 2, 4), strict=True))


def run(quick: bool) -> Section:
    """Run every program at every size, each once: the result does not depend on chance."""
    section = Section(
        "scratch_memory",
        "The memory of one scope over 10,000 iterations",
        "`x = x * 0.5 + 1` holds at most four times the peak of what was live; a loop that rebinds the same names at "
        "most twice; either may hold a chunk (1 MiB), the minimum. *Live* is the peak that the buffer counted.",
    )
    table = Table("", ["loop", "array", "live", "held", "held / live", "left at the end", "bar"])
    above: dict[str, list[str]] = {program: [] for program in PROGRAMS}
    for program, bar in BARS.items():
        for size in SIZES[:1] if quick else SIZES:
            arguments = {"program": program, "nbytes": size, "turns": 200 if quick else TURNS}
            samples = collect([NUMPY], Call("benchmarks.experiments.scratch_memory", "measure", arguments), Plan(1, 1))
            reply = samples.replies[NUMPY.name][0][0]
            section.raw[f"{program} {size}"] = reply
            held, lived = reply["held"], reply["lived"]
            row = [program, name(size), f"{lived / KIB:,.0f} KiB", f"{held / KIB:,.0f} KiB", f"{held / lived:.2f}"]
            table.rows.append([*row, f"{reply['left'] / KIB:,.0f} KiB", f"{bar}"])
            if held > max(bar * lived, CHUNK):
                above[program].append(f"{name(size)}: {held / lived:.2f}")
    section.tables.append(table)
    for program, bar in BARS.items():
        got = "; ".join(above[program]) or "at every size"
        outcome = "failed" if above[program] else "passed"
        section.verdicts.append(Verdict(f"{program}: at most {bar} times what was live", got, outcome))
    return section

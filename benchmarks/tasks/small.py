"""Arrays so small that only the calls count; also a program for callgrind: counts, and --install."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

FILLERS = 50  # few enough to be cheap, enough to average


def parts(loops: int) -> Iterator[range]:
    """Split the loops into parts, each with one more live array.

    The cost of an object in Python depends on whether it is the last in its block of objects; two programs that differ
    in their imports would differ by chance.
    """
    kept = []
    for _ in range(FILLERS):
        kept.append(np.empty(1))
        yield range(loops // FILLERS)


def empty(loops: int) -> None:
    """Call np.empty(8), which NumPy's small-block cache serves."""
    make = np.empty
    for part in parts(loops):
        for _ in part:
            make(8)


def add(loops: int) -> None:
    """Compute x + x on one element."""
    x = np.ones(1)
    for part in parts(loops):
        for _ in part:
            result = x + x
            del result


def zeros(loops: int) -> None:
    """np.zeros(100)."""
    make = np.zeros
    for part in parts(loops):
        for _ in part:
            make(100)


STATEMENTS = {"np.empty(8)": empty, "x + x": add, "np.zeros(100)": zeros}


def measure(loops: int) -> dict[str, float]:
    """Return seconds per iteration of each statement: the fastest of five short loops, to exclude interruptions."""
    result: dict[str, float] = {}
    for name, statement in STATEMENTS.items():
        times: list[float] = []
        for _ in range(5):
            start = time.perf_counter()
            statement(loops)
            times.append((time.perf_counter() - start) / loops)
        result[name] = min(times)
    return result


def main(arguments: list[str]) -> None:
    """Run each statement as often as the counts say."""
    if "--install" in arguments:
        import firsttouch

        firsttouch.install()
        arguments.remove("--install")
    for statement, loops in zip(STATEMENTS.values(), arguments, strict=True):
        statement(int(loops))


if __name__ == "__main__":
    main(sys.argv[1:])

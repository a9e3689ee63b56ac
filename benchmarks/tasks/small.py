"""Arrays so small that only the calls count; also a program for callgrind: counts, and --install."""

from __future__ import annotations

import sys
import time

import numpy as np


def empty(loops: int) -> None:
    """np.empty(8), NumPy's small-block cache at its best."""
    make = np.empty
    for _ in range(loops):
        make(8)


def add(loops: int) -> None:
    """x + x on one element."""
    x = np.ones(1)
    for _ in range(loops):
        result = x + x
        del result


def zeros(loops: int) -> None:
    """np.zeros(100)."""
    make = np.zeros
    for _ in range(loops):
        make(100)


STATEMENTS = {"np.empty(8)": empty, "x + x": add, "np.zeros(100)": zeros}


def measure(loops: int) -> dict[str, float]:
    """Seconds per turn of each statement: the quickest of five short loops, which no interruption met."""
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

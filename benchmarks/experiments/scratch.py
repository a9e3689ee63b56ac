"""`@scratch` on a function with six temporaries, compared with NumPy's default, the pool, and `@use(pool)`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.measuring import FIRSTTOUCH, NUMPY, Column, Samples, Section, collect, judge, median
from firsttouch.tools.bench.common import KIB, MIB, name
from firsttouch.tools.measuring.contenders import TUNED_GLIBC
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


Array = np.ndarray[Any, np.dtype[np.float64]]


def scalar(a: Array, b: Array) -> float:
    """Use six temporaries, most of which are freed one after another; return a number."""
    x = (a * b + a) / (b + 1.0)
    y = np.sqrt(x - a * 0.25)
    return float(y.sum())


def array(a: Array, b: Array) -> Array:
    """Use six temporaries that are live until the end; return the last."""
    product = a * b
    above = product + a
    below = b + 1.0
    quotient = above / below
    more = quotient + a
    root: Array = np.sqrt(more)
    return root


FUNCTIONS: dict[str, Callable[[Array, Array], Any]] = {"scalar": scalar, "array": array}


def kinds(function: Callable[[Array, Array], Any]) -> dict[str, Callable[[Array, Array], Any]]:
    """Return the plain function, and decorated ones; *again* repeats one, for the A/A row."""
    import firsttouch as ft

    return {
        "plain": function,
        "use": ft.use(ft.pool())(function),
        "scratch": ft.scratch(function),
        "again": ft.scratch(function),
    }


def calls(function: Callable[[Array, Array], Any], a: Array, b: Array, count: int) -> list[int]:
    """Return the nanoseconds of each call, excluding the first few, for which caches are cold."""
    clock = time.perf_counter_ns
    times: list[int] = []
    warming = min(3, 1 + count // 8)
    for _ in range(warming + count):
        start = clock()
        result = function(a, b)
        times.append(clock() - start)
        del result
    return times[warming:]


def percentiles(times: Sequence[int]) -> tuple[float, float]:
    """Return the median and the 95th percentile, in seconds."""
    middle, high = np.percentile(times, [50, 95])
    return float(middle) * 1e-9, float(high) * 1e-9


def measure(nbytes: int, seconds: float) -> dict[str, float]:
    """Measure each kind in short runs, in shuffled order, until each had its seconds and at least ten calls."""
    a, b = np.full(nbytes // 8, 1.5), np.full(nbytes // 8, 2.5)
    shuffle, reply = random.Random(0), dict[str, float]()
    for function, plain in FUNCTIONS.items():
        made = kinds(plain)
        times: dict[str, list[int]] = {kind: [] for kind in made}
        calls(made["plain"], a, b, 2)
        once = min(calls(made["scratch"], a, b, 3)) * 1e-9
        run = max(5, min(200, int(0.004 / once)))
        for _ in range(max(-(-10 // run), int(seconds / (run * once)))):
            for kind in shuffle.sample(list(made), len(made)):
                times[kind] += calls(made[kind], a, b, run)
        for kind, row in times.items():
            middle, high = percentiles(row)
            reply[f"{function} {kind}"] = middle
            reply[f"{function} {kind} spread"] = high / middle
    return reply


# ---- The experiment


SIZES = (1 * KIB, 4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 1 * MIB, 8 * MIB)
SECONDS, ROUNDS = 0.05, 12
TITLES = {"scalar": "Returning a number", "array": "Returning an array"}


def ratios(samples: Samples, function: str) -> dict[str, Column]:
    """Return the decorated function's time divided by others'; the pool's is that of the same process."""
    ours, plain = f"{function} scratch", f"{function} plain"
    time = samples.column(FIRSTTOUCH, ours)
    return {
        "the pool": time / samples.column(FIRSTTOUCH, plain),
        "`@use(pool)`": time / samples.column(FIRSTTOUCH, f"{function} use"),
        "scratch again": time / samples.column(FIRSTTOUCH, f"{function} again"),
        "NumPy": samples.column(NUMPY, ours) / samples.column(NUMPY, plain),
        "tuned glibc": time / samples.column(TUNED_GLIBC, plain),
    }


def run(quick: bool) -> Section:
    """Measure both functions at every size, then judge the bars."""
    section = Section(
        "scratch",
        "A function with six temporaries in a scratch scope",
        "inside `@scratch` no slower than under the installed pool at any size beyond the noise, and the times of "
        "calls spread less (95th over 50th percentile) than under NumPy's default. Cells are its time divided by "
        "the column's: below 1 it is faster. A returned array of 128 KiB or less is copied to ordinary memory; "
        "larger ones have memory of their own.",
    )
    tables = {key: Table(f"**{title}**", []) for key, title in TITLES.items()}
    spread = Table("**Spread**: 95th percentile over the median", ["array", "function", "NumPy", "the pool", "scratch"])
    against: dict[str, dict[str, Column]] = {key: {} for key in FUNCTIONS}
    wider: dict[str, dict[str, Column]] = {key: {} for key in FUNCTIONS}
    for size in (16 * KIB, 1 * MIB) if quick else SIZES:
        everyone, rounds = [NUMPY, FIRSTTOUCH, TUNED_GLIBC], 2 if quick else ROUNDS
        samples = collect(everyone, measure, rounds, 10 * size, nbytes=size, seconds=SECONDS)
        section.raw[str(size)] = samples.replies
        for function, table in tables.items():
            cells = ratios(samples, function)
            table.columns = ["array", "time", *cells]
            time = f"{median(samples.column(FIRSTTOUCH, f'{function} scratch')).value * 1e6:,.1f} us"
            table.rows.append([name(size), time, *(str(median(cell)) for cell in cells.values())])
            against[function][name(size)] = cells["the pool"]
            plain = samples.column(NUMPY, f"{function} plain spread")
            ours = samples.column(NUMPY, f"{function} scratch spread")
            pool = samples.column(FIRSTTOUCH, f"{function} plain spread")
            wider[function][name(size)] = ours / plain
            words = [f"{median(column).value:.2f}" for column in (plain, pool, ours)]
            spread.rows.append([name(size), function, *words])
    section.tables += [*tables.values(), spread]
    for function, title in TITLES.items():
        section.verdicts.append(judge(f"{title}: at most the pool's time", 1.0, against[function]))
        section.verdicts.append(judge(f"{title}: its spread at most NumPy's", 1.0, wider[function]))
    section.notes.append("The spreads of NumPy and scratch are from one process with NumPy's default.")
    return section

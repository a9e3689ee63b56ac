"""The size from which on the pool should serve: the same sizes pooled and forwarded in one process."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from statistics import median as middle
from typing import Any

import numpy as np

from benchmarks.measuring import Plan, collect
from firsttouch import stats
from firsttouch.tools.measuring.contenders import FIRSTTOUCH
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import KIB, name
from firsttouch.tools.measuring.statistics import Estimate, Verdict, median

# ---- What is measured, in a process of its own


def hook() -> Callable[[int], None] | None:
    """Return the function that sets the limit below which requests are forwarded; None if this build has none."""
    native = importlib.import_module("firsttouch._firsttouch")
    return getattr(native, "set_small_limit", None)


def measure(nbytes: int) -> dict[str, float]:
    """Return seconds per iteration of `np.empty` and of an expression, alternately pooled and forwarded."""
    import firsttouch

    move = hook()
    if move is None:
        return {}
    before = firsttouch.stats().small_limit
    times: dict[str, list[float]] = {}
    try:
        for turn in range(40):
            for kind in ("pooled", "forwarded") if turn % 2 else ("forwarded", "pooled"):
                move(0 if kind == "pooled" else nbytes + 1)
                empty, expression = once(nbytes // 8, kind)
                times.setdefault(f"empty {kind}", []).append(empty)
                times.setdefault(f"expression {kind}", []).append(expression)
    finally:
        move(before)
    return {name: middle(row) for name, row in times.items()}


_operands: dict[tuple[str, int], Any] = {}


def once(count: int, kind: str) -> tuple[float, float]:
    """Time short loops with operands of the same kind."""
    if (kind, count) not in _operands:
        _operands[kind, count] = (np.full(count, 1.5), np.full(count, 2.5))
    a, b = _operands[kind, count]
    make, clock = np.empty, time.perf_counter
    loops = range(max(4, (1 << 16) // count))
    start = clock()
    for _ in loops:
        make(count)
    between = clock()
    for _ in loops:
        result = (a * b + a) / (b + 1.0) - a
        del result
    return (between - start) / len(loops), (clock() - between) / len(loops)


# ---- The experiment


SIZES = tuple(size * KIB for size in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256))
STATEMENTS = {"empty": "np.empty", "expression": "(a*b+a)/(b+1.0)-a"}


def run(quick: bool) -> Section:
    """Sweep the sizes around the limit."""
    section = Section(
        "limit",
        "The size from which on the pool serves",
        "the limit below which requests go to NumPy's own allocator is chosen by measurement. Cells are the "
        "pool's time divided by the forwarded one's in the same process: below 1 the pool is faster.",
    )
    if hook() is None:
        section.verdicts.append(Verdict("the sweep", "this build cannot change the limit", "not measured"))
        return section
    ratios = [f"`{code}`" for code in STATEMENTS.values()]
    table = Table("", ["size", *ratios, *(f"{key}, pooled" for key in STATEMENTS)])
    found: dict[str, dict[int, Estimate]] = {key: {} for key in STATEMENTS}
    for size in (4 * KIB, 64 * KIB) if quick else SIZES:
        call = Call("benchmarks.experiments.limit", "measure", {"nbytes": size})
        samples = collect([FIRSTTOUCH], call, Plan.steady(quick), 8 * size)
        section.raw[str(size)] = samples.replies
        times: list[str] = []
        for key in STATEMENTS:
            pooled = samples.column(FIRSTTOUCH, f"{key} pooled")
            forwarded = samples.column(FIRSTTOUCH, f"{key} forwarded")
            found[key][size] = median(pooled / forwarded)
            times.append(f"{median(pooled).value * 1e9:,.0f} ns")
        table.rows.append([name(size), *(str(found[key][size]) for key in STATEMENTS), *times])
    section.tables.append(table)
    for key, code in STATEMENTS.items():
        slower = [size for size, estimate in found[key].items() if estimate.low > 1.0]
        words = f"at {', '.join(map(name, slower))}" if slower else "nowhere"
        section.notes.append(f"`{code}` is slower from the pool {words}.")
    section.notes.append(f"This build forwards requests below {name(stats().small_limit)}.")
    return section

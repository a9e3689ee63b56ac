"""Five figures of a machine with Windows, for docs/explanation/windows.md: `python -m benchmarks.windows`.

The first two are the study that the zeros of ArrayAllocators.jl began with: 8 MiB of zeros took 13.7 us by calloc, and
1.8 ms by filling. Here both are also written twice and summed.
"""

import ctypes
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.zeros import EAGER, LAZY, MAKERS
from firsttouch.tools.measuring import machine

if sys.platform == "win32":
    from firsttouch.tools.measuring import jobs

    def resident() -> int:
        """Return the bytes of this process's working set."""
        return int(jobs._memory(jobs._kernel.GetCurrentProcess()).resident)
else:
    from benchmarks.process_memory import resident

ITEMS, ARRAYS = 1 << 20, 15
PHASES = ("create", "first write", "second write", "sum")


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its value."""
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def lives(make: Callable[[int], Any]) -> list[float]:
    """Return the median seconds of each phase of arrays that all stay, so that each is on memory that is new."""
    kept, rows = [], []
    for _ in range(ARRAYS):
        created, array = timed(lambda: make(ITEMS))
        kept.append(array)
        calls = partial(array.fill, 1), partial(array.fill, 2), array.sum
        rows.append([created, *(timed(call)[0] for call in calls)])
    return [median(times) for times in zip(*rows, strict=True)]


def rate(huge: Any) -> str:
    """Return the rate at which fresh pages of a kind are written, or why there are none."""
    allocator, times = ft.pages(huge=huge, populate=True), []
    for _ in range(ARRAYS):
        took, array = timed(partial(allocator.empty, 8 * ITEMS, np.uint8))
        times.append(took)
        receipt = ft.receipt(array)
    if huge and receipt is not None and receipt.huge is None:
        return f"not granted ({'; '.join(receipt.why_not)})"
    return units.rate(8 * ITEMS / median(times))


def expression(allocator: ft.Allocator) -> float:
    """Return the median seconds of an expression with temporaries of 8 MiB."""
    a, b = np.ones(ITEMS), np.ones(ITEMS)
    with ft.use(allocator):
        return median(timed(lambda: (a * b + a) / (b + 1.0) - a)[0] for _ in range(ARRAYS))


def idle() -> str:
    """Return what a pool holds beyond the process's start: full, empty, and three seconds later."""
    before, pool = resident(), ft.pool()
    kept = [pool.full(ITEMS, 1.0) for _ in range(32)]
    held = [resident()]
    kept.clear()
    held.append(resident())
    time.sleep(3)
    return ", ".join(units.size(max(0, each - before)) for each in [*held, resident()])


def main() -> None:
    """Print the machine and the figures."""
    wine = sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")
    system = f"{platform.system()} {platform.release()}{' (wine)' if wine else ''}"
    print(f"{system}, {platform.processor()}, {machine.processors()} processors, NumPy {np.__version__}")
    found = {way: lives(MAKERS[way]) for way in MAKERS}
    width = max(map(len, found))
    print(f"\n8 MiB of zeros{'':{width - 14}} {'  '.join(f'{phase:>12}' for phase in PHASES)}")
    for way, times in found.items():
        print(f"{way:{width}} {'  '.join(f'{units.seconds(each):>12}' for each in times)}")
    created, used = (found[EAGER][0] / found[LAZY][0], sum(found[EAGER]) / sum(found[LAZY]))
    print(f"\n1. zeros, created alone: {created:.1f} times as fast by calloc (the study: 131)")
    print(f"2. created, written twice and summed: {used:.2f} times as fast")
    print(f"3. first touch: {rate(False)} on small pages, {rate('2M')} on large ones")
    plain, pooled = expression(ft.numpy_default()), expression(ft.pool())
    print(f"4. an expression on 8 MiB: {units.seconds(plain)}, from a pool {units.seconds(pooled)}")
    print(f"5. memory of a pool, full, empty and 3 s later: {idle()}")


if __name__ == "__main__":
    main()

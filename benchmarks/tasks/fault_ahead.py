"""Writing fresh memory once, on a pool that populates ahead, one that does not, and that again, in turns."""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np

import firsttouch as ft

OPERATIONS = ("np.ones", "a * 2", "np.concatenate", "np.fromfile")
#: What a second program does meanwhile: the same, over and over.
_COMPANION = """
import numpy as np, firsttouch as ft
with ft.use({allocator!r}):
    while True:
        np.ones({length})
        ft.trim(None)
"""
#: Every order of the pools in turn, so that each is as often the first: it gets what the one before gave back.
_orders = itertools.cycle(itertools.permutations(("without", "with", "again")))


@cache
def _operation(name: str, length: int) -> Callable[[], Any]:
    """Return what is timed, with its operands resident; a file lies in the page cache."""
    if name == "np.ones":
        return lambda: np.ones(length)
    if name == "a * 2":
        operand = np.ones(length)
        return lambda: operand * 2
    if name == "np.concatenate":
        parts = [np.ones(length // 4)] * 4
        return lambda: np.concatenate(parts)
    file = tempfile.NamedTemporaryFile(prefix="firsttouch-")  # noqa: SIM115 - it goes with the process
    np.ones(length).tofile(file.name)
    return lambda: np.fromfile(file.name)


def measure(nbytes: int, operation: str, huge: bool, beside: bool) -> dict[str, float]:
    """Return seconds by the clock, and seconds of all processors, of each pool; `beside`, another such program runs."""

    def pool(who: str) -> ft.Allocator:
        return ft.pool(None if huge else ft.pages(huge=False), fault_ahead=who == "with")

    call = _operation(operation, nbytes // 8)
    found: dict[str, float] = {}
    with ExitStack() as stack:
        if beside:
            code = _COMPANION.format(allocator=str(pool("with")), length=nbytes // 8)
            companion = stack.enter_context(subprocess.Popen([sys.executable, "-c", code]))
            stack.callback(companion.kill)
            time.sleep(0.5)
        for who in next(_orders):
            with ft.use(pool(who)):
                before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
                made = call()
                found[who] = time.perf_counter() - start
                after = resource.getrusage(resource.RUSAGE_SELF)
            found[f"{who}, processors"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            del made
    return found

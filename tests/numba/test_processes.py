"""Code compiled once that runs in other processes; and processes without Numba, or with another version."""

import importlib.util
from pathlib import Path

import pytest

from tests.programs import ROOT, ask, run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")

MODULE = """
import numpy as np
from numba import njit

@njit(cache=True)
def total(buf, n):
    mark = buf.mark()
    x = buf.zeros(n, np.int64)
    x[:] = 2
    t = x.sum()
    buf.rewind(mark)
    return t

@njit(cache=True)
def caller(buf, n):
    return total(buf, n) + total(buf, 10 * n)
"""

USE = """
import json, sys
import firsttouch as ft, cached
before = "firsttouch.numba" in sys.modules
buffer = ft.ScratchBuffer()
found = [int(cached.caller(buffer, 30)), int(cached.caller(ft.FixedBuffer(), 30)), buffer.used]
stats = cached.caller.stats
print(json.dumps([before, found, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
"""


def test_cached_code(tmp_path: Path) -> None:
    (tmp_path / "cached.py").write_text(MODULE)
    env = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert ask(USE, env=env, prologue="") == [False, [660, 660, 0], 0, 1]
    for _ in range(2):
        assert ask(USE, env=env, prologue="") == [False, [660, 660, 0], 1, 0]
    # Another version's structures may have other offsets.
    other = "from firsttouch import _firsttouch; _firsttouch.__version__ = '0.0.1'" + USE
    assert ask(other, env=env, prologue="") == [False, [660, 660, 0], 0, 1]


def test_forks() -> None:
    """A child goes on with buffers of its parent; one on shared storage is closed there."""
    run(
        """
        import mmap, os
        from numba import njit

        @njit
        def made(buf, value):
            x = buf.empty(30, np.int64)
            x[:] = value
            return x

        shared = mmap.mmap(-1, 1 << 20)
        own, common = ft.ScratchBuffer(), ft.FixedBuffer(shared)
        kept = [made(own, 1), made(common, 2)]
        child = os.fork()
        if child == 0:
            try:
                assert (made(own, 3) == 3).all() and (kept[0] == 1).all()
                probe.message(MemoryError, lambda: made(common, 4))
                kept.clear()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert (kept[0] == 1).all() and (kept[1] == 2).all()
        assert (made(common, 5) == 5).all()
        """,
        "-W",
        "ignore",
    )


def test_the_interpreter_ends_with_arrays_alive() -> None:
    run(
        """
        from numba import njit

        @njit
        def made(buf, value):
            return buf.zeros(30, np.int64)

        kept = [made(ft.ScratchBuffer(), 1), made(ft.FixedBuffer(), 1)]
        kept.append(kept)
        """
    )


def test_no_memory_at_all() -> None:
    """The first failure of a thread, for which there is no memory either."""
    run(
        """
        from numba import njit
        from tests.memory_out.failing import exhaust

        @njit
        def total(buf):
            return buf.zeros(30, np.int64).sum()

        buffer = ft.ScratchBuffer("1 MiB")
        total(buffer)
        buffer.reset()
        ft.trim()
        exhaust(lambda: int(total(buffer)), 0, 70_000)
        """
    )

"""What the C library keeps of freed memory goes back to the system, too."""

import sys
import sysconfig
import textwrap

import pytest

from tests.programs import ask, execute, quiet, run

pytestmark = [
    pytest.mark.quick,
    pytest.mark.linux("glibc alone is trimmed"),
    pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="CPython has its objects in mimalloc"),
]

#: Small objects that are dropped but for a few, which hold the heap's end; and whether it is so little soon.
PROLOGUE = """
import json
import numpy as np
import firsttouch as ft
from tests import probe

def fill():
    kept = [str(number) * 100 for number in range(200_000)]
    return kept[::1000], kept

def falls_to(bound):
    return probe.wait_until(lambda: probe.rss() <= bound)
"""


def under_run(program: str, *words: str) -> None:
    code = PROLOGUE + textwrap.dedent(program)
    quiet(execute(sys.executable, "-W", "ignore", "-m", "firsttouch", "run", "-q", "-c", code, *words))


def test_it_goes_after_a_fork() -> None:
    """In parent and child, though neither takes memory of the pool any more: the fork has ended the thread."""
    under_run("""
        import os

        start = probe.rss()
        few, all = fill()
        most = start + (probe.rss() - start) // 3
        del all
        child = os.fork()
        assert falls_to(most)
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)


#: A function is called here, or in a worker that lives on.
WORKERS = """
import multiprocessing, sys

def through(way, work):
    if way == "here":
        return work()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(work)

def work():
    start = probe.rss()
    few, all = fill()
    full = probe.rss() - start
    del all
    return falls_to(start + full // 3)

if __name__ == "__main__":
    assert through(sys.argv[1], work)
"""


@pytest.mark.parametrize("way", ["here", "a worker"])
def test_it_goes_under_run(way: str) -> None:
    under_run(WORKERS, way)


def test_trim_returns_it_at_once() -> None:
    full, left, returned = ask(
        """
        start = probe.rss()
        few, all = fill()
        full = probe.rss() - start
        del all
        returned = ft.trim()
        print(json.dumps([full, probe.rss() - start, returned]))
        """,
        prologue=PROLOGUE,
    )
    assert left <= full / 3
    assert returned >= full / 2


def test_arrows_pool_is_asked_where_it_is_loaded() -> None:
    run(
        """
        import sys
        ft.trim()
        assert "pyarrow" not in sys.modules
        class Pool:
            asked = 0
            def release_unused(self):
                Pool.asked += 1
        sys.modules["pyarrow"] = type(sys)("pyarrow")
        ft.trim()  # it is being imported
        sys.modules["pyarrow"].default_memory_pool = Pool
        ft.trim()
        ft.trim(ft.pool())
        assert Pool.asked == 1
        """,
        prologue=PROLOGUE,
    )


def test_arrows_pool_is_asked_by_itself_once_it_is_idle() -> None:
    run(
        """
        import sys
        class Pool:
            allocated = held = asked = looked = 0
            def total_bytes_allocated(self):
                Pool.looked += 1
                return Pool.allocated
            def bytes_allocated(self):
                return Pool.held
            def release_unused(self):
                Pool.asked += 1
        def looks(count):
            end = Pool.looked + count
            return probe.wait_until(lambda: Pool.looked >= end)
        ft.install(trim_c_library=True)
        import builtins
        imported, theirs = [], builtins.__import__
        builtins.__import__ = lambda name, *rest: (imported.append(name), theirs(name, *rest))[1]
        sys.modules["pyarrow"] = type(sys)("pyarrow")
        sys.modules["pyarrow"].default_memory_pool = Pool
        Pool.allocated = Pool.held = 100 << 20
        assert looks(3) and not Pool.asked  # all of it is in use
        Pool.held = 0
        assert looks(3) and Pool.asked == 1  # once: there is nothing more to return
        Pool.allocated += 1 << 20
        assert looks(3) and Pool.asked == 1  # that is not worth it
        assert not imported  # of which the program would hear
        """,
        prologue=PROLOGUE,
    )


@pytest.mark.slow
def test_what_arrow_keeps_goes_under_run() -> None:
    pytest.importorskip("pyarrow")
    under_run("""
        import pyarrow

        def work(rows):
            table = pyarrow.table({"number": range(rows), "text": [f"text {row}" * 5 for row in range(rows)]})
            return probe.rss()

        start = work(10)
        full = work(1_000_000) - start
        assert falls_to(start + full // 3)
    """)

"""What the C library keeps of freed memory goes back to the system, too."""

import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

from tests.programs import ask, execute, quiet, run

pytestmark = [
    pytest.mark.quick,
    pytest.mark.linux("glibc alone is trimmed"),
    pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="CPython has its objects in mimalloc"),
]

#: Small objects that are dropped but for a few, which hold the heap's end; and what is resident after a while.
PROLOGUE = """
import json, time
import numpy as np
import firsttouch as ft
from tests import probe

def fill():
    kept = [str(number) * 100 for number in range(200_000)]
    return kept[::1000], kept

def resident_after(bound, seconds):
    deadline = time.monotonic() + seconds
    while probe.rss() > bound and time.monotonic() < deadline:
        time.sleep(0.02)
    return probe.rss()
"""


def test_it_goes_after_a_fork(tmp_path: Path) -> None:
    """In parent and child, though neither takes memory of the pool any more: the fork has ended the thread."""
    script = tmp_path / "program.py"
    script.write_text(
        PROLOGUE
        + textwrap.dedent("""
        import os

        start = probe.rss()
        few, all = fill()
        most = start + (probe.rss() - start) // 3
        del all
        child = os.fork()
        assert resident_after(most, 30) <= most
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """)
    )
    quiet(execute(sys.executable, "-W", "ignore", "-m", "firsttouch", "run", "-q", str(script)))


#: A function is called here, or in a worker that lives on.
WORKERS = """
import multiprocessing, os, sys

def through(way, work):
    if way == "here":
        return work()
    if way == "a worker":
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return pool.apply(work)
    child = os.fork()  # as a server forks its workers
    if not child:
        os._exit(not work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def work():
    start = probe.rss()
    few, all = fill()
    full = probe.rss() - start
    del all
    return resident_after(start + full // 3, 30) <= start + full // 3

if __name__ == "__main__":
    assert through(sys.argv[1], work)
"""


@pytest.mark.parametrize("way", ["here", "a worker", "a child"])
def test_it_goes_under_run(way: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROLOGUE + WORKERS)
    quiet(execute(sys.executable, "-W", "ignore", "-m", "firsttouch", "run", "-q", str(script), way))


def test_its_thread_ends_where_there_is_little() -> None:
    run(
        """
        ft.install(trim_c_library=True)
        ended = lambda: probe.wait_until(lambda: "firsttouch" not in probe.threads(), 30)
        assert ended()
        array = np.ones(1 << 20)
        start = probe.rss()
        few, all = fill()  # the list of all of them keeps the thread
        full = probe.rss() - start
        del all
        assert resident_after(start + full // 3, 30) <= start + full // 3
        del array
        assert ended()
        """,
        prologue=PROLOGUE,
    )


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

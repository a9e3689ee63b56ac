"""Processes that a program starts: what they inherit, and `ft.install` as their initializer."""

import sys
from pathlib import Path

import pytest

from tests.programs import execute, quiet, run

#: Two threads make arrays all the time. Workers that were given no initializer have what a fork leaves them.
PROGRAM = """
import multiprocessing, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import firsttouch as ft
from firsttouch._internal.resolve import parse

GIVEN = 'limited(pool(), "1 GiB")'

def work(number):
    before = ft.stats().allocations
    arrays = [np.full(size, number, np.uint8) for size in (40_000, 700_000, 5 << 20)]
    zeros = np.zeros(6 << 20, np.uint8)
    right = all((array == number).all() for array in arrays) and not zeros.any()
    served = str(ft.get_allocator(zeros)), ft.stats().allocations - before
    return bool(right), np.arange(number * 1000), ft.is_installed(), *served

def check(results, installed=True, allocator=None):
    for number, (right, array, there, by, served) in enumerate(results):
        assert right and there == installed, (right, there)
        assert np.array_equal(array, np.arange(number * 1000))
        assert by == str(parse(allocator)) if allocator else served >= 4 * installed, (by, served)

def churn(stop):
    while not stop.is_set():
        np.ones(3 << 20, np.uint8)

def through(way):
    if way == "subprocess":
        words = [sys.executable, "-c", "import numpy as np; print(np.ones(9**7).sum())"]
        for _ in range(5):
            assert float(subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout) == 9**7
    elif way == "loky":
        import joblib
        from joblib.externals.loky import get_reusable_executor
        with joblib.parallel_config("loky", n_jobs=2, initializer=ft.install):
            check(joblib.Parallel()(joblib.delayed(work)(number) for number in range(6)))
        get_reusable_executor().shutdown(wait=True)
    else:
        context = multiprocessing.get_context(way)
        for initializer in (None, ft.install):
            with context.Pool(2, initializer) as pool:
                check(pool.map(work, range(20)), installed=bool(initializer) or way == "fork")
                pool.close()
                pool.join()
        with ProcessPoolExecutor(2, mp_context=context, initializer=ft.install, initargs=(GIVEN,)) as executor:
            check(executor.map(work, range(20)), allocator=GIVEN)

if __name__ == "__main__":
    ft.install()
    warm = np.ones(20 << 20, np.uint8)
    del warm
    stop = threading.Event()
    threads = [threading.Thread(target=churn, args=(stop,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        through(sys.argv[1])
    finally:
        stop.set()
    for thread in threads:
        thread.join()
    print("done")
"""


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver", "subprocess", "loky"])
def test_every_way_to_start_a_process(way: str, tmp_path: Path) -> None:
    if way == "loky":
        pytest.importorskip("joblib")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    # With threads of its own the program gets Python's warning about fork.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script), way]
    assert quiet(execute(*command)) == "done\n"


FORKS = """
import os
import numpy as np
import firsttouch as ft
ft.install(trim_c_library=True)
os.register_at_fork(after_in_parent=lambda: [None for n in range({length})])
kept = np.ones(1 << 20)
def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert [fork() for _ in range(20)] == [0] * 20
"""


@pytest.mark.parametrize("length", [10, 100_000])
def test_python_finds_no_thread_of_ours_after_the_programs_own_hooks(length: int) -> None:
    """The hook is called after ours; a long list of it is served by the pool."""
    assert run(FORKS.format(length=length), "-W", "always::DeprecationWarning") == ""

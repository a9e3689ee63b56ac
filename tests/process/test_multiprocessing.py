"""multiprocessing, concurrent.futures and subprocess, from a process with pooled arrays and busy threads."""

import sys
from pathlib import Path

import pytest

from tests.programs import environment, quiet, run

PROGRAM = """
import multiprocessing, os, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import firsttouch as ft

def work(number):
    arrays = [np.full(size, number, np.uint8) for size in (40_000, 700_000, 5 << 20)]
    zeros = np.zeros(6 << 20, np.uint8)
    right = all((array == number).all() for array in arrays) and not zeros.any()
    return right, np.arange(number * 1000), ft.is_installed()

def check(results, installed):
    for number, (right, array, there) in enumerate(results):
        assert right and there == installed, (right, there)
        assert np.array_equal(array, np.arange(number * 1000))

def churn(stop):
    while not stop.is_set():
        np.ones(3 << 20, np.uint8)

if __name__ == "__main__":
    kind, busy = sys.argv[1:]
    ft.install()
    warm = np.ones(20 << 20, np.uint8)
    del warm
    stop, threads = threading.Event(), []
    if busy == "busy":
        threads = [threading.Thread(target=churn, args=(stop,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    installed = kind == "fork"
    if kind == "subprocess":
        for _ in range(5):
            said = subprocess.run([sys.executable, "-c", "import numpy as np; print(np.ones(9**7).sum())"],
                                  stdout=subprocess.PIPE, check=True, text=True)
            assert float(said.stdout) == 9**7
    else:
        context = multiprocessing.get_context(kind)
        with context.Pool(2) as pool:
            check(pool.map(work, range(20)), installed)
            pool.close()
            pool.join()
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            check(executor.map(work, range(20)), installed)
    stop.set()
    for thread in threads:
        thread.join()
    print("done")
"""


def started(tmp_path: Path, *words: str) -> str:
    import subprocess

    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    # Only with threads of its own does the program get Python's warning about fork.
    flags = ["-W", "ignore::DeprecationWarning" if words[1] == "busy" else "error::DeprecationWarning"]
    command = [sys.executable, *flags, str(script), *words]
    return quiet(subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False))


@pytest.mark.parametrize("busy", ["alone", "busy"])
@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver", "subprocess"])
def test_every_way_to_start_a_process(kind: str, busy: str, tmp_path: Path) -> None:
    if kind == "fork" and busy == "alone" and sys.version_info >= (3, 12):
        pytest.skip("multiprocessing.Pool has threads of its own: Python 3.12 and newer warn with and without us")
    assert started(tmp_path, kind, busy) == "done\n"


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

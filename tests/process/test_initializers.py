"""Programs that install in the processes they start: `ft.install` as an initializer."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import firsttouch as ft
from tests.programs import environment, quiet, start

_PROGRAM = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import firsttouch as ft
from firsttouch._internal.resolve import parse

def work(number):
    before = ft.stats().allocations
    array = np.full(1 << 20, float(number))
    for _ in range(5):
        array = array + 1
    right = array.sum() == (number + 5) * (1 << 20)
    return bool(right), ft.is_installed(), str(ft.get_allocator(array)), ft.stats().allocations - before

if __name__ == "__main__":
    way, method, *given = sys.argv[1:]
    if way == "pool":
        with multiprocessing.get_context(method).Pool(2, ft.install, tuple(given)) as pool:
            found = pool.map(work, range(6))
    elif way == "executor":
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, context, initializer=ft.install, initargs=tuple(given)) as executor:
            found = list(executor.map(work, range(6)))
    elif way == "joblib":
        import joblib
        from joblib.externals.loky import get_reusable_executor
        with joblib.parallel_config("loky", n_jobs=2, initializer=ft.install, initargs=tuple(given)):
            found = joblib.Parallel()(joblib.delayed(work)(number) for number in range(6))
        get_reusable_executor().shutdown(wait=True)
    else:
        import dask
        tasks = [dask.delayed(work)(number) for number in range(6)]
        if method == "threads":
            ft.install(*given)
            found = dask.compute(*tasks, scheduler="threads", num_workers=2)
        else:
            with ProcessPoolExecutor(2, initializer=ft.install, initargs=tuple(given)) as executor:
                found = dask.compute(*tasks, scheduler="processes", pool=executor)
    assert ft.is_installed() == (method == "threads")
    expected = str(parse(given[0])) if given else None
    for right, installed, allocator, served in found:
        assert right and installed, found
        assert served >= 6 or given or method == "threads", found
        assert expected is None or allocator == expected, (allocator, expected)
    print("done")
"""

METHODS = ["fork", "spawn", "forkserver"]
WAYS = [(way, method) for way in ("pool", "executor") for method in METHODS]
WAYS += [("joblib", "loky"), ("dask", "processes"), ("dask", "threads")]


@pytest.mark.parametrize("given", [[], ['limited(pool(), "1 GiB")']], ids=["the process's pool", "an expression"])
@pytest.mark.parametrize(("way", "method"), WAYS, ids=[" ".join(way) for way in WAYS])
def test_workers_are_served(way: str, method: str, given: list[str], tmp_path: Path) -> None:
    if way in ("joblib", "dask"):
        pytest.importorskip(way, reason=f"needs {way}")
    (tmp_path / "program.py").write_text(_PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "program.py", way, method, *given],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert quiet(done) == "done\n"


def test_what_is_sent_can_be_pickled() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(ft.install, protocol)) is ft.install
    with pytest.raises(TypeError, match=r"cannot pickle 'firsttouch.Allocator'"):
        pickle.dumps(ft.pool())


def test_an_initializer_that_fails_says_why() -> None:
    done = start("""
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        import multiprocessing
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(1, context, initializer=ft.install, initargs=("no_such()",)) as executor:
            try: executor.submit(abs, 1).result()
            except BrokenProcessPool: print("broken")
    """)
    assert done.stdout == "broken\n"
    assert "no_such" in done.stderr
    assert "ValueError" in done.stderr or "TypeError" in done.stderr

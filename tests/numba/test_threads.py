"""One buffer per thread; parallel loops take one for each. In processes of their own, because threads remain."""

import importlib.util

import pytest

from tests.programs import ask, run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")

BEGIN = """
import json, threading, time
import numpy as np, firsttouch as ft
from numba import njit, objmode, prange
import firsttouch.numba as fn

@njit
def fill(buf, n):
    x = buf.empty(n, np.int64)
    x[:] = n
    return x.sum()
"""

#: A call that lasts until `done` is set.
LASTING = (
    BEGIN
    + """
entered, done = threading.Event(), threading.Event()

def wait():
    entered.set()
    done.wait()

@njit(nogil=True)
def slow(buf):
    x = buf.empty(30, np.int64)
    x[:] = 1
    with objmode():
        wait()
    return x.sum()
"""
)


def test_a_second_thread_and_a_child_forked_while_another_runs_on_the_buffer() -> None:
    found = ask(
        """
        import os, warnings
        warnings.simplefilter("ignore")  # Python warns of forks with threads
        buffer, results = ft.ScratchBuffer(), []
        fill(ft.ScratchBuffer(), 3)
        first = threading.Thread(target=lambda: results.append(int(slow(buffer))))
        first.start()
        entered.wait()
        second = int(fill(buffer, 5))  # each call has chunks of its own
        child = os.fork()
        if not child:
            other = threading.Thread(target=fill, args=(buffer, 3))  # with the number of the first, which is gone
            other.start()
            other.join()
            os._exit(int(fill(buffer, 3)))
        results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()
        first.join()
        print(json.dumps([second, *results, int(fill(buffer, 3)), buffer.used]))
        """,
        prologue=LASTING,
    )
    assert found == [25, 9, 30, 9, 0]


def test_loops_in_parallel() -> None:
    run(
        """
        @njit(parallel=True)
        def rows(buffers, x, out):
            for i in prange(len(x)):
                buf = buffers.local()
                mark = buf.mark()
                t = buf.empty(x.shape[1])
                u = buf.zeros(x.shape[1])
                for j in range(x.shape[1]):
                    t[j] = x[i, j] * 2
                    u[j] += 1
                out[i] = t.sum() + u.sum()
                buf.rewind(mark)

        x = np.random.default_rng(1).random((5000, 100))
        out = np.zeros(5000)
        for buffers in (fn.ThreadBuffers(), fn.ThreadBuffers(ft.FixedBuffer())):
            for _ in range(20):
                out[:] = 0
                rows(buffers, x, out)
                assert np.allclose(out, x.sum(1) * 2 + 100)
                assert buffers.buffer.used == 0
        """,
        prologue=BEGIN,
    )


def test_failures_in_any_thread_are_told() -> None:
    found = ask(
        """
        @njit(parallel=True)
        def rows(buffers, out, which):
            for i in prange(len(out)):
                buf = buffers.local()
                t = buf.empty(10**15 if i == which else 10)
                t[0] = i
                out[i] = t[0]

        @njit(parallel=True)
        def shapes(buffers, out):
            for i in prange(len(out)):
                out[i] = buffers.local().empty(500 - i).size

        out = np.zeros(1000)
        told = []
        try:
            shapes(fn.ThreadBuffers(), out)
        except BaseException as error:
            told.append(repr(error.__cause__ or error))
        for which in (0, 999):
            buffers = fn.ThreadBuffers()
            try:
                rows(buffers, out, which)
            except BaseException as error:
                told.append(repr(error.__cause__ or error))
            told.append(buffers.buffer.used)
            rows(buffers, out, -1)
        print(json.dumps(told))
        """,
        prologue=BEGIN,
        env={"NUMBA_NUM_THREADS": "2"},
    )
    shape, first, used, other, used_too = found
    assert "ValueError('negative dimensions" in shape
    assert "cannot allocate 7.11 PiB" in first
    assert "cannot allocate 7.11 PiB" in other
    assert [used, used_too] == [0, 0]

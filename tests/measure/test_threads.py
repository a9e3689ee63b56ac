"""measure() in threads, tasks, processes, and programs that install."""

import asyncio
import sys
import threading

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB
from tests.programs import ask, run


def _in_thread(work: object) -> None:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_all_threads_count_or_one() -> None:
    kept = []
    with ft.measure() as every, ft.measure(threads="own") as own:
        kept.append(np.ones(MIB, np.uint8))
        _in_thread(lambda: kept.append(np.ones(2 * MIB, np.uint8)))
        assert (every.kept, own.kept) == (3 * MIB, MIB)
        _in_thread(kept.clear)  # who frees does not matter
    assert (every.allocated, every.kept) == (3 * MIB, 0)
    assert (own.allocated, own.kept, own.peak) == (MIB, 0, MIB)


def test_many_threads_add_up() -> None:
    def work() -> None:
        for turn in range(200):
            a = np.empty(32768 + 64 * turn, np.uint8)
            with ft.measure(threads="own") as m:
                b = np.empty(65536, np.uint8)
                del b
            assert (m.arrays, m.peak, m.kept) == (1, 65536, 0)
            del a

    with ft.measure() as m:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert m.arrays == 4 * 400
    assert m.allocated == 4 * (200 * (32768 + 65536) + 64 * sum(range(200)))
    assert m.kept == 0


def test_tasks_count_what_happens_while_their_block_is_open() -> None:
    async def work(nbytes: int) -> int:
        with ft.measure() as m:
            a = np.ones(nbytes, np.uint8)
            await asyncio.sleep(0)
            del a
        return m.allocated

    async def both() -> tuple[int, int]:
        return await asyncio.gather(work(MIB), work(2 * MIB))

    first, second = asyncio.run(both())
    assert (first, second) == (3 * MIB, 2 * MIB)


def test_installed_and_not_in_one_program() -> None:
    found = ask("""
        import json
        def work():
            a = np.ones(10**6); b = np.sqrt(a) + a; del a; c = np.zeros(2 * 10**6)
            return b, c
        def figures():
            with ft.measure() as m:
                kept = work()
            return m.as_dict(), ft.is_installed()
        plain, _ = figures()
        assert not ft.is_installed() and ft.get_allocator() == ft.numpy_default()
        before = work()
        ft.install()
        installed, _ = figures()
        with ft.measure() as m:
            del before  # NumPy's own, and not of the block
            kept = work()
            ft.uninstall()
            late = work()
        assert m.arrays == 2 * plain["arrays"], m
        del kept, late
        again, _ = figures()
        ft.install("filled(pool())")
        adapted, _ = figures()
        print(json.dumps([plain, installed, again, adapted]))
    """)
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0]["arrays"] == (
        4 if sys.platform == "win32" else 3
    )  # the sum takes the memory of its operand on Linux


@pytest.mark.linux("fork")
def test_a_block_of_a_forked_child_is_its_own() -> None:
    run("""
        import os
        with ft.measure() as m:
            a = np.ones(10**6)
            pid = os.fork()
            b = np.ones(10**6)
            assert m.arrays == 2
            if pid == 0:
                with ft.measure() as inner:
                    c = np.ones(10**6)
                assert (m.arrays, inner.arrays) == (3, 1)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert (m.arrays, m.kept) == (2, 16 * 10**6)
    """)


def test_blocks_that_nobody_ends() -> None:
    run("""
        import gc
        def left():
            with ft.measure() as m:
                yield m
        kept = next(left())
        generator = left(); m = next(generator)
        del generator, kept; gc.collect()
        np.ones(10**6)
        block = ft.measure(); block.__enter__()
        np.ones(10**6)
    """)

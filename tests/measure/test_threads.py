"""measure() in threads, tasks, processes, and programs that install."""

import asyncio

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB, in_thread
from tests.programs import run


def test_all_threads_count() -> None:
    kept = []
    with ft.measure() as m:
        kept.append(np.ones(MIB, np.uint8))
        in_thread(lambda: kept.append(np.ones(2 * MIB, np.uint8)))
        assert m.kept == 3 * MIB
        in_thread(kept.clear)
    assert (m.allocated, m.kept) == (3 * MIB, 0)


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

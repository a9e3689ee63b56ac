"""Contexts leak, scopes do not: they serve their own thread and process. Each thread and task has a default buffer."""

import asyncio
import contextvars
import gc
import threading
import timeit
import weakref
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import in_thread
from tests.scratch.arrays import LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick


NUMPY = ft.numpy_default()


def make(kept: Kept) -> None:
    for size in (MIDDLE, LARGE, 2000):
        kept.make(size)


def test_a_task_beside_the_scope_of_another() -> None:
    async def holder(entered: asyncio.Event, done: asyncio.Event) -> None:
        with ft.scratch(ft.FixedBuffer(4_096)):
            entered.set()
            await done.wait()
            with pytest.raises(MemoryError):
                np.ones(MIDDLE)

    async def main() -> None:
        entered, done = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(holder(entered, done))
        await entered.wait()
        assert ft.get_allocator() == NUMPY
        make(Kept())  # more than the buffer has
        assert ft.scratch(lambda: int(np.ones(MIDDLE).sum()))() == MIDDLE
        done.set()
        await task

    asyncio.run(main())


def test_a_thread_that_is_given_the_context() -> None:
    buffer, kept = ft.ScratchBuffer("1 MiB"), Kept()
    asked, go = threading.Event(), threading.Event()
    with ft.scratch(buffer) as s:
        context = contextvars.copy_context()

        def body() -> None:
            context.run(make, kept)
            with pytest.raises(RuntimeError, match="another thread"):
                s.empty(10)
            asked.set()
            go.wait()
            context.run(make, kept)

        thread = threading.Thread(target=body)
        thread.start()
        while not asked.wait(0.001):
            churn(1)
        assert buffer.used == 0
    go.set()
    thread.join()
    assert buffer.used == 0
    with ft.scratch(buffer):
        churn()
    assert kept.intact()


def test_the_nearest_open_scope_around_it_serves_and_then_who_was_there_before() -> None:
    first, second, pool, kept = ft.ScratchBuffer("1 MiB"), ft.ScratchBuffer("1 MiB"), ft.pool(), Kept()
    with ft.use(pool):
        with ft.scratch(first):
            with ft.scratch(second):
                context = contextvars.copy_context()
            context.run(make, kept)
            assert first.used >= MIDDLE + 2000
            assert second.used == 0
        used = first.used
        context.run(make, kept)
        assert first.used == used
        assert ft.stats(pool).in_use >= MIDDLE + LARGE
    churn()
    assert kept.intact()


def test_each_thread_has_its_own_and_it_goes_with_the_thread() -> None:
    found: list[Any] = []
    kept = Kept()

    def body() -> None:
        mine = ft.buffers.default_buffer()
        assert mine is ft.buffers.default_buffer() is not main
        found.append(weakref.ref(mine))
        with ft.scratch() as s:
            assert s.buffer is mine
            kept.make()

    main = ft.buffers.default_buffer()
    for _ in range(3):
        in_thread(body)
    gc.collect()
    assert [each() for each in found] == [None] * 3
    churn()
    assert kept.intact()
    assert ft.buffers.default_buffer() is main


def test_each_task_has_its_own_and_it_goes_with_the_task() -> None:
    async def task() -> Any:
        mine = ft.buffers.default_buffer()
        with ft.scratch() as s:
            array = np.ones(MIDDLE)
            await asyncio.sleep(0)
            assert s.buffer is mine is ft.buffers.default_buffer()
        return weakref.ref(mine), array

    async def main() -> None:
        own = ft.buffers.default_buffer()
        found = await asyncio.gather(*(task() for _ in range(5)))
        await asyncio.sleep(0)  # until then the loop has the tasks in hand
        gc.collect()
        assert own is ft.buffers.default_buffer()
        assert [reference() for reference, _ in found] == [None] * 5
        assert all(array.all() for _, array in found)
        await asyncio.to_thread(lambda: ft.buffers.default_buffer())

    thread = ft.buffers.default_buffer()
    asyncio.run(main())
    assert ft.buffers.default_buffer() is thread


def test_another_buffer_as_the_default_for_a_block() -> None:
    mine, inner, usual = ft.ScratchBuffer("1 MiB"), ft.FixedBuffer("2 MiB"), ft.buffers.default_buffer()

    @ft.scratch
    def used() -> Any:
        x = np.ones(1_000)
        return x, (mine.used >= x.nbytes, inner.used >= x.nbytes, usual.used >= x.nbytes)

    assert used()[1] == (False, False, True)
    with ft.buffers.using_buffer(mine) as given:
        assert given is mine is ft.buffers.default_buffer()
        assert used()[1] == (True, False, False)
        with ft.buffers.using_buffer(inner), ft.scratch() as s:
            assert s.buffer is inner
            assert used()[1] == (False, True, False)
        assert ft.buffers.default_buffer() is mine
        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(ft.buffers.default_buffer).result() not in (mine, inner, usual)
    assert ft.buffers.default_buffer() is usual
    with pytest.raises(ZeroDivisionError), ft.buffers.using_buffer(ft.FixedBuffer("64 KiB")):
        print(1 // len([each for each in used()[1] if each]))
    assert ft.buffers.default_buffer() is usual


def test_using_buffer_of_a_generator_that_another_thread_closes() -> None:
    def generator() -> Generator[None]:
        with ft.buffers.using_buffer(ft.ScratchBuffer("1 MiB")):
            yield

    before, suspended = ft.buffers.default_buffer(), generator()
    next(suspended)
    in_thread(suspended.close)
    assert ft.buffers.default_buffer() is before


def test_the_scopes_of_many_other_tasks_cost_little() -> None:
    """They stand in one list, and their buffers are among those that may have made a block."""

    def seconds() -> float:
        return min(timeit.repeat(lambda: np.empty(500), number=100, repeat=20))

    buffers, others = [ft.ScratchBuffer() for _ in range(2_000)], []
    with ft.scratch(ft.ScratchBuffer()):
        alone = seconds()
        for buffer in buffers:
            scopes, context = ft.scratch(buffer), contextvars.Context()
            context.run(scopes.__enter__)
            others.append((scopes, context))
        beside = seconds()
        for scopes, context in others:
            context.run(scopes.__exit__)
    assert beside < 40 * alone, (beside, alone)

"""A scope serves only while it is open, in its own thread and process: contexts leak, its memory does not.

The first sentences of what scopes mean, with everything that keeps a context for later.
"""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick

NUMPY = ft.numpy_default()


def make(kept: Kept) -> None:
    for size in (MIDDLE, LARGE, 2000):
        kept.make(size)


def test_a_child_task_after_the_scope() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()

    async def child(ended: asyncio.Event) -> None:
        await ended.wait()
        make(kept)

    async def main() -> None:
        ended = asyncio.Event()
        with ft.scratch(buffer):
            task = asyncio.create_task(child(ended))
            await asyncio.sleep(0)
        ended.set()
        await task
        assert buffer.used == 0
        with ft.scratch(buffer):
            churn()
        assert kept.intact()

    asyncio.run(main())
    assert kept.intact()


def test_a_child_task_while_the_scope_is_open() -> None:
    """It may be served by its parent's scope: they share a thread. Its arrays live on all the same."""
    buffer, kept = ft.ScratchBuffer(), Kept()

    async def child() -> None:
        for _ in range(5):
            make(kept)
            await asyncio.sleep(0)

    async def main() -> None:
        tasks = []
        for _ in range(4):
            with ft.scratch(buffer):
                tasks.append(asyncio.create_task(child()))
                await asyncio.sleep(0)
                churn(1)
        await asyncio.gather(*tasks)
        with ft.scratch(buffer):
            churn()

    asyncio.run(main())
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0


def test_call_later() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()

    async def main() -> None:
        with ft.scratch(buffer):
            asyncio.get_running_loop().call_later(0.01, make, kept)
            asyncio.get_running_loop().call_soon(make, kept)
        await asyncio.sleep(0.05)
        assert buffer.used == 0
        with ft.scratch(buffer):
            churn()

    asyncio.run(main())
    assert len(kept) == 6
    assert kept.intact()


def test_to_thread() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()

    async def main() -> None:
        with ft.scratch(buffer):
            await asyncio.to_thread(make, kept)
            assert buffer.used == 0
            later = asyncio.create_task(asyncio.to_thread(make, kept))
            churn()
        await later
        assert buffer.used == 0

    asyncio.run(main())
    churn()
    assert len(kept) == 6
    assert kept.intact()


def test_a_thread_that_is_given_the_context() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
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
    first, second, pool, kept = ft.ScratchBuffer(), ft.ScratchBuffer(), ft.pool(), Kept()
    with ft.use(pool):
        with ft.scratch(first):
            with ft.scratch(second):
                context = contextvars.copy_context()
            context.run(make, kept)
            assert first.used >= sum(array.nbytes for array, _ in kept.arrays)
            assert second.used == 0
        used = first.used
        context.run(make, kept)
        assert first.used == used
        assert ft.stats(pool).in_use >= MIDDLE + LARGE
    churn()
    assert kept.intact()


def test_a_generator_left_half_way() -> None:
    """Between its yields its caller runs on its scope; nothing is lost when it ends, wherever that is."""
    buffer, kept = ft.ScratchBuffer(), Kept()

    def inside() -> Iterator[Any]:
        with ft.scratch(buffer):
            yield kept.make()
            yield kept.make(LARGE)

    for end in ("close", "exhaust", "drop"):
        generator: Any = inside()
        next(generator)
        make(kept)
        next(generator)
        if end == "close":
            generator.close()
        elif end == "exhaust":
            assert next(generator, None) is None
        del generator
        assert ft.get_allocator() == NUMPY, end
        make(kept)
        churn()
        with ft.scratch(buffer):
            churn()
        assert kept.intact()
    kept.clear()
    assert buffer.used == 0


def test_a_generator_that_another_thread_ends() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()

    def inside() -> Iterator[None]:
        with ft.scratch(buffer):
            make(kept)
            yield

    generator: Any = inside()
    next(generator)
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    make(kept)
    used = buffer.used
    make(kept)
    assert buffer.used == used
    with ft.scratch(buffer):
        churn()
    assert kept.intact()
    assert ft.get_allocator() == NUMPY


def test_tasks_have_buffers_of_their_own_in_turn() -> None:
    async def task(seed: int, buffers: list[Any]) -> bool:
        kept = Kept()
        for _ in range(5):
            with ft.scratch() as s:
                buffers.append(s.buffer)
                kept.make(MIDDLE + seed)
                await asyncio.sleep(0)
                np.ones(MIDDLE) * 2
            await asyncio.sleep(0)
        return kept.intact() and len({id(buffer) for buffer in buffers}) == 1

    async def main() -> list[bool]:
        lists: list[list[Any]] = [[] for _ in range(8)]
        right = await asyncio.gather(*(task(seed, each) for seed, each in enumerate(lists)))
        assert len({id(each[0]) for each in lists}) == 8
        return list(right)

    assert asyncio.run(main()) == [True] * 8

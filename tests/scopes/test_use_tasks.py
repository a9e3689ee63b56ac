"""use() in coroutines, asyncio tasks and generators."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Generator, Iterator

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick

NUMPY = ft.numpy_default()


def test_a_decorated_coroutine_keeps_it_over_awaits() -> None:
    pool = ft.pool()

    @ft.use(pool)
    async def made() -> list[ft.Allocator | None]:
        seen = [ft.get_allocator(np.empty(MIB))]
        await asyncio.sleep(0.01)
        return [*seen, ft.get_allocator(np.empty(MIB))]

    async def main() -> tuple[list[ft.Allocator | None], ft.Allocator | None]:
        return await made(), ft.get_allocator()

    assert asyncio.iscoroutinefunction(made)
    assert asyncio.run(main()) == ([pool, pool], NUMPY)


def test_tasks_do_not_see_each_others() -> None:
    async def task(allocator: ft.Allocator) -> bool:
        right = True
        for _ in range(5):
            with ft.use(allocator):
                await asyncio.sleep(0.001)
                right &= ft.get_allocator(np.empty(MIB)) == allocator
            right &= ft.get_allocator(np.empty(MIB)) == NUMPY
            await asyncio.sleep(0.001)
        return right

    async def main() -> list[bool]:
        return await asyncio.gather(*(task(ft.pool()) for _ in range(8)))

    assert asyncio.run(main()) == [True] * 8


def test_the_same_object_in_many_tasks() -> None:
    scope = ft.use(ft.pool())

    async def task(delay: float) -> bool:
        with scope as pool:
            await asyncio.sleep(delay)
            inside = ft.get_allocator() == pool
        return inside and ft.get_allocator() == NUMPY

    async def main() -> list[bool]:
        return await asyncio.gather(*(task(delay) for delay in (0.03, 0.01, 0.02, 0.0)))

    assert asyncio.run(main()) == [True] * 4
    assert ft.get_allocator() == NUMPY


def test_a_child_task_may_outlive_the_block() -> None:
    """It keeps the context it was started in; its arrays are valid whatever the parent does."""

    async def child(go: asyncio.Event) -> np.ndarray:
        await go.wait()
        return np.full(MIB, 7.0)

    async def main() -> np.ndarray:
        go = asyncio.Event()
        with ft.use(ft.pool()):
            task = asyncio.create_task(child(go))
        go.set()
        return await task

    assert (asyncio.run(main()) == 7).all()


def test_to_thread_takes_the_context_along() -> None:
    async def main(pool: ft.Allocator) -> ft.Allocator | None:
        with ft.use(pool):
            return await asyncio.to_thread(lambda: ft.get_allocator(np.empty(MIB)))

    pool = ft.pool()
    assert asyncio.run(main(pool)) == pool


def test_generators_are_refused_as_functions() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    for function in (numbers, later):
        with pytest.raises(TypeError, match=rf"use\(\) cannot decorate the generator {function.__name__}: "):
            ft.use()(function)


def test_a_generator_closed_after_the_blocks_around_it() -> None:
    """Its block is open between its yields, which nothing can help; it ends without harm, in whatever order."""
    first, second = ft.pool(), ft.pool()

    def suspended() -> Generator[None]:
        with ft.use(second):
            yield

    with ft.use(first):
        generator = suspended()
        next(generator)
    assert ft.get_allocator() == second
    generator.close()
    assert ft.get_allocator() == NUMPY


def test_a_block_that_ends_in_another_context_changes_nothing_there() -> None:
    scope = ft.use(ft.pool())
    contextvars.copy_context().run(scope.__enter__)
    with ft.use(ft.calloc()) as current:
        scope.__exit__(None, None, None)
        assert ft.get_allocator() == current
    assert ft.get_allocator() == NUMPY

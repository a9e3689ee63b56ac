"""use() as a block and as a decorator, in threads, coroutines, tasks and generators."""

import asyncio
import contextvars
import sys
from collections.abc import AsyncIterator, Generator, Iterator

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB, in_thread
from tests.programs import ask

pytestmark = pytest.mark.quick

NUMPY = ft.numpy_default()
#: From Python 3.14 on that can be asked for; free-threaded builds do it always.
INHERITS = bool(getattr(sys.flags, "thread_inherit_context", 0))


def test_the_block_and_no_more() -> None:
    pool = ft.pool()
    with ft.use(pool) as given:
        assert given == pool == ft.get_allocator()
        inside = np.empty(MIB)
    assert ft.get_allocator() == NUMPY
    assert ft.get_allocator(inside) == pool
    assert ft.get_allocator(np.empty(MIB)) == NUMPY
    assert not ft.is_installed()


def test_without_an_argument_it_is_the_processes_pool_and_warm() -> None:
    with ft.use() as first:
        array = np.ones(3 * MIB)
        del array
    recycled = ft.stats().recycled
    with ft.use() as second:
        array = np.ones(3 * MIB)
    assert first == second
    assert ft.stats().recycled == recycled + 1
    assert ft.get_allocator(array) == first


def test_the_same_object_again_inside_itself() -> None:
    scope = ft.use(ft.pool())
    with scope as first:
        with scope, ft.use(NUMPY), scope:
            assert ft.get_allocator() == first
        assert ft.get_allocator() == first
    assert ft.get_allocator() == NUMPY
    with scope:
        assert ft.get_allocator() == first
    assert ft.get_allocator() == NUMPY


def test_a_decorated_function() -> None:
    pool = ft.pool()

    @ft.use(pool)
    def made(size: int, *, again: int = 0) -> list[np.ndarray]:
        """Arrays."""
        return [np.ones(size), *(made(size, again=again - 1) if again else [])]

    assert (made.__name__, made.__doc__) == ("made", "Arrays.")
    assert {ft.get_allocator(array) for array in made(MIB, again=3)} == {pool}
    assert ft.get_allocator() == NUMPY
    with pytest.raises(ValueError):
        ft.use(pool)(np.zeros)(-1)
    assert ft.get_allocator() == NUMPY


@pytest.mark.linux("/proc")
def test_entering_often_leaves_nothing_behind() -> None:
    grown, variables = ask("""
        import contextvars, gc, json
        decorated = ft.use(ft.pool())(int)
        def often(times):
            for _ in range(times):
                with ft.use():
                    pass
                decorated()
            gc.collect()
            return probe.status("VmRSS"), len(contextvars.copy_context())
        before = often(2000)
        after = often(20000)
        print(json.dumps([after[0] - before[0], after[1] - before[1]]))
    """)
    assert grown < 512 << 10
    assert variables == 0


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


def test_a_use_wins_over_install_in_its_thread_only() -> None:
    ft.install()
    installed = ft.get_allocator()

    def body() -> None:
        assert ft.get_allocator(np.empty(MIB)) == (own if INHERITS else installed)
        with ft.use(ft.calloc()) as calloc:
            assert ft.get_allocator() == calloc

    with ft.use(ft.pool()) as own:
        in_thread(body)
        assert ft.get_allocator(np.empty(MIB)) == own
    assert ft.get_allocator(np.empty(MIB)) == installed

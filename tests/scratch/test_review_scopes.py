"""Scopes that are still referenced are not reused, and keep nothing that is not theirs."""

import asyncio
import contextvars
import gc
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import LARGE, MIDDLE

pytestmark = pytest.mark.quick


def suspended(*buffer: Any) -> Any:
    with ft.scratch(*buffer):
        yield


def test_a_result_that_came_through_an_ended_scope_inside() -> None:
    @ft.scratch
    def call() -> Any:
        with ft.scratch():
            context = contextvars.copy_context()
        return context.run(np.ones, LARGE, np.uint8)

    for _ in range(3):
        array = call()
        assert (array == 1).all()
        array.resize(2 * LARGE, refcheck=False)
        assert array[:LARGE].all()
        assert not array[LARGE:].any()
        del array


@pytest.mark.parametrize("what", ["the scope", "the allocator"])
def test_a_scope_that_ended_stays_so(what: str) -> None:
    with ft.scratch() as s:
        held: Any = s if what == "the scope" else ft.get_allocator()
    del s
    for _ in range(3):
        with ft.scratch(), ft.scratch(), pytest.raises(RuntimeError, match="has ended"):
            held.empty(MIDDLE)


def test_a_context_inside_keeps_the_scopes_around_it() -> None:
    with ft.scratch(), ft.scratch():
        context = contextvars.copy_context()
    buffer = ft.default_buffer()
    with ft.scratch():
        array = context.run(np.ones, MIDDLE, np.uint8)
        assert buffer.used == 0
    del array


def test_a_buffer_is_gone_with_its_last_array_whatever_was_nested() -> None:
    class Own:
        def allocate(self, nbytes: int, alignment: int) -> Any:
            return None

        def mark(self) -> Any:
            return 0

        def rewind(self, mark: Any) -> None: ...

    storage = bytearray(2 * MIDDLE)
    buffer, own = ft.FixedBuffer(storage), Own()
    gone = weakref.ref(own)
    for outer in (ft.scratch(buffer), ft.scratch(own)):
        with outer, ft.scratch():
            np.ones(MIDDLE // 8)
    del buffer, own, outer
    gc.collect()
    storage.extend(b"it can move again")
    assert gone() is None


def test_leaving_elsewhere_takes_nobody_along() -> None:
    plain = ft.get_allocator()
    context = contextvars.copy_context()
    ended = suspended()
    context.run(next, ended)
    ended.close()  # here, so that it is still the current one there
    with ft.use(ft.calloc()):
        other = suspended()
        next(other)
        context.run(other.close)
    assert context.run(ft.get_allocator) == plain == ft.get_allocator()


def test_tasks_may_share_a_context_manager() -> None:
    manager = ft.scratch()

    async def task(number: int) -> bool:
        await asyncio.sleep(0.01 * number)
        with manager as s:
            await asyncio.sleep(0.025)
            was = s.is_open
        return was and not s.is_open

    async def main() -> None:
        assert all(await asyncio.gather(*map(task, range(5))))

    asyncio.run(main())


def test_a_mark_of_a_buffer_that_is_gone() -> None:
    for _ in range(20):
        buffer = ft.ScratchBuffer()
        mark = buffer.mark()
        del buffer
        buffer = ft.ScratchBuffer()
        buffer.mark()
        with pytest.raises(ValueError, match="mark"):
            buffer.rewind(mark)


def test_a_decorated_function_that_knows_itself_is_collected() -> None:
    class Held:
        pass

    def make() -> "weakref.ref[Held]":
        held = Held()

        @ft.scratch
        def call(turns: int) -> int:
            return call(turns - 1) if turns and held is not None else 0

        call(2)
        return weakref.ref(held)

    gone = make()
    gc.collect()
    assert gone() is None


def started(*buffer: Any) -> Any:
    generator = suspended(*buffer)
    next(generator)
    return generator


def test_scopes_that_overlap_for_ever_keep_nothing() -> None:
    def turns(number: int) -> int:
        generator = started()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(number):
            following = started()
            generator.close()
            generator = following
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        turns(10)
        assert turns(2000) < 20_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_scopes_around_serve_whatever_ended_between(closed: int) -> None:
    buffer = ft.ScratchBuffer()
    with ft.scratch(buffer):
        between = [started() for _ in range(3)]
        between.pop(closed).close()
        inner = started(ft.FixedBuffer(100))
        context = contextvars.copy_context()
        for each in between:
            each.close()
        inner.close()
        assert buffer.used == 0
        array = context.run(np.ones, MIDDLE, np.uint8)
        assert buffer.used >= MIDDLE
        assert ft.get_allocator() != ft.numpy_default()
    array.resize(2 * MIDDLE, refcheck=False)
    assert array[:MIDDLE].all()
    del array
    assert buffer.used == 0
    assert ft.get_allocator() == ft.numpy_default()

"""The default buffer of each thread and each task, and what can replace it."""

import asyncio
import functools
import gc
import threading
import weakref
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import MIDDLE, Kept, churn

pytestmark = pytest.mark.quick


def test_the_same_object_each_time() -> None:
    buffer = ft.default_buffer()
    assert buffer is ft.default_buffer() is ft.default_buffer("growing") is ft.default_buffer(ft.ScratchBuffer)
    with ft.scratch() as s:
        assert s.buffer is buffer
    fixed = ft.default_buffer("fixed")
    assert fixed is ft.default_buffer(ft.FixedBuffer) is not buffer
    assert isinstance(fixed, ft.FixedBuffer)


def test_each_thread_has_its_own_and_it_goes_with_the_thread() -> None:
    found: list[Any] = []
    kept = Kept()

    def body() -> None:
        mine = ft.default_buffer()
        assert mine is ft.default_buffer() is not main
        found.append(weakref.ref(mine))
        with ft.scratch() as s:
            assert s.buffer is mine
            kept.make()

    main = ft.default_buffer()
    for _ in range(3):
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    gc.collect()
    assert [each() for each in found] == [None] * 3
    churn()
    assert kept.intact()
    assert ft.default_buffer() is main


def test_a_pools_threads_keep_theirs() -> None:
    with ThreadPoolExecutor(1) as executor:
        first = executor.submit(ft.default_buffer).result()
        assert executor.submit(ft.default_buffer).result() is first


def test_each_task_has_its_own_and_it_goes_with_the_task() -> None:
    async def task() -> Any:
        mine = ft.default_buffer()
        with ft.scratch() as s:
            array = np.ones(MIDDLE)
            await asyncio.sleep(0)
            assert s.buffer is mine is ft.default_buffer()
        return weakref.ref(mine), array

    async def main() -> None:
        own = ft.default_buffer()
        found = await asyncio.gather(*(task() for _ in range(5)))
        await asyncio.sleep(0)  # until then the loop has the tasks in hand
        gc.collect()
        assert own is ft.default_buffer()
        assert [reference() for reference, _ in found] == [None] * 5
        assert all(array.all() for _, array in found)
        await asyncio.to_thread(lambda: ft.default_buffer())

    thread = ft.default_buffer()
    asyncio.run(main())
    assert ft.default_buffer() is thread


class Mine:
    """Scratch memory of one's own: the simplest there is."""

    def __init__(self) -> None:
        self.memory = np.zeros(1 << 20, np.uint8)
        self.top = 0

    def allocate(self, nbytes: int, alignment: int) -> int:
        start = self.memory.ctypes.data
        address = -(-(start + self.top) // alignment) * alignment
        if address + nbytes > start + self.memory.size:
            return 0
        self.top = address + nbytes - start
        return int(address)

    def mark(self) -> int:
        return self.top

    def rewind(self, mark: int) -> None:
        self.top = mark


def test_kinds_of_ones_own() -> None:
    wide = functools.partial(ft.ScratchBuffer, "4 MiB")
    for kind in (Mine, wide, lambda: ft.FixedBuffer("2 MiB")):
        buffer = ft.default_buffer(kind)
        assert buffer is ft.default_buffer(kind)
        with ft.scratch(buffer) as s:
            assert s.buffer is buffer
            assert np.ones(MIDDLE).all()
        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(ft.default_buffer, kind).result() is not buffer
    assert ft.default_buffer(wide) is not ft.default_buffer(functools.partial(ft.ScratchBuffer, "4 MiB"))


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("large", ValueError, r"default_buffer\(\): kind='large': give 'growing' or 'fixed'"),
        (7, TypeError, "kind=7 is int"),
        (Mine(), TypeError, r"goes to scratch\(\) or using_buffer\(\)"),
        (ft.ScratchBuffer(), TypeError, r"scratch\(\) or using_buffer\(\)"),
        (lambda: 5, TypeError, "got int, which has no allocate"),
        (lambda size: size, TypeError, "cannot be called without arguments"),
    ],
    ids=["name", "number", "object", "buffer", "result", "arguments"],
)
def test_other_kinds_are_refused(kind: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ft.default_buffer(kind)


def test_another_buffer_as_the_default_for_a_block() -> None:
    mine, inner, usual = ft.ScratchBuffer(), ft.FixedBuffer("2 MiB"), ft.default_buffer()

    @ft.scratch
    def used() -> Any:
        return np.ones(MIDDLE), (mine.used >= 8 * MIDDLE, inner.used >= 8 * MIDDLE, usual.used >= 8 * MIDDLE)

    assert used()[1] == (False, False, True)
    with ft.using_buffer(mine) as given:
        assert given is mine is ft.default_buffer()
        assert used()[1] == (True, False, False)
        with ft.using_buffer(inner), ft.scratch() as s:
            assert s.buffer is inner
            assert used()[1] == (False, True, False)
        assert ft.default_buffer() is mine
        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(ft.default_buffer).result() not in (mine, inner, usual)
    assert ft.default_buffer() is usual
    with pytest.raises(ZeroDivisionError), ft.using_buffer(Mine()):
        print(1 // len([each for each in used()[1] if each]))
    assert ft.default_buffer() is usual


def test_what_is_no_buffer_can_not_be_the_default() -> None:
    for wrong in (5, None, "1 MiB", np.ones(3), Mine):
        with pytest.raises(TypeError, match=r"using_buffer\(\)"):
            ft.using_buffer(wrong)


def test_one_using_buffer_in_two_tasks() -> None:
    shared, own = ft.using_buffer(ft.ScratchBuffer("4 MiB")), []

    async def first(entered: asyncio.Event, left: asyncio.Event) -> None:
        before = ft.default_buffer()
        with shared:
            await entered.wait()
        own.append(ft.default_buffer() is before)
        left.set()

    async def second(entered: asyncio.Event, left: asyncio.Event) -> None:
        with shared as buffer:
            entered.set()
            await left.wait()
            own.append(ft.default_buffer() is buffer)

    async def main() -> None:
        entered, left = asyncio.Event(), asyncio.Event()
        await asyncio.gather(first(entered, left), second(entered, left))

    asyncio.run(main())
    assert own == [True, True]


def test_using_buffer_of_a_generator_that_another_thread_closes() -> None:
    def generator() -> Generator[None]:
        with ft.using_buffer(ft.ScratchBuffer()):
            yield

    before, suspended = ft.default_buffer(), generator()
    next(suspended)
    thread = threading.Thread(target=suspended.close)
    thread.start()
    thread.join()
    assert ft.default_buffer() is before
    with pytest.raises(RuntimeError, match="was not entered"):
        ft.using_buffer(ft.ScratchBuffer()).__exit__(None, None, None)

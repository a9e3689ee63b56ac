"""A scope: NumPy uses a buffer here, until it ends, in whatever order, and wherever that is."""

import contextlib
import contextvars
import gc
import sys
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import in_thread
from tests.scratch.arrays import MIDDLE, SMALL, Kept, churn

pytestmark = pytest.mark.quick


NUMPY = ft.numpy_default()


def test_arrays_come_from_the_buffer_and_their_memory_is_free_at_the_end() -> None:
    buffer = ft.ScratchBuffer("1 MiB")
    with ft.scratch(buffer) as s:
        assert s.buffer is buffer
        opened = s.is_open
        made = s.empty(MIDDLE, np.uint8)
        numpys = np.ones(MIDDLE, np.uint8)
        assert buffer.used >= 2 * MIDDLE
        del made, numpys
    assert (opened, s.is_open) == (True, False)
    assert buffer.used == 0
    assert buffer.peak >= 2 * MIDDLE
    assert ft.get_allocator() == NUMPY
    before = buffer.peak
    np.ones(3 * MIDDLE, np.uint8)
    assert buffer.peak == before


def test_constructors_give_small_arrays_too_and_numpy_keeps_its_own() -> None:
    with ft.scratch(ft.ScratchBuffer("1 MiB")) as s:
        array = s.ones(3)
        assert s.buffer.used >= 24
        assert array.ctypes.data % 64 == 0
        used = s.buffer.used
        small = np.ones(SMALL, np.uint8)
        assert s.buffer.used == used
        assert small.sum() == SMALL


def test_inside_and_around_other_blocks() -> None:
    pool, buffer = ft.pool(), ft.ScratchBuffer("1 MiB")
    with ft.use(pool):
        with ft.scratch(buffer):
            inside = np.ones(5_000)
            with ft.use(pool):
                assert ft.get_allocator(np.ones(MIDDLE)) == pool
                with ft.scratch(buffer):
                    assert ft.get_allocator(np.ones(5_000)) == buffer
                assert ft.get_allocator(np.ones(MIDDLE)) == pool
            assert buffer.used >= inside.nbytes
            assert ft.get_allocator(np.ones(5_000)) == buffer
        assert ft.get_allocator() == pool
    assert ft.get_allocator() == NUMPY


@pytest.mark.parametrize("expression", ["pool()", "limited(pool(), '1 GiB')", "numpy_default()"])
def test_a_function_where_another_allocator_is_used(expression: str) -> None:
    buffer, chosen = ft.ScratchBuffer("1 MiB"), eval(expression, vars(ft))

    @ft.scratch(buffer)
    def called() -> Any:
        arrays = np.ones(5_000), chosen.ones(5_000)
        return [ft.get_allocator(array) == buffer for array in arrays]

    with ft.use(chosen):
        assert called() == [True, False]
        with ft.scratch(buffer):
            assert called() == [True, False]
        assert ft.get_allocator() == chosen
    assert called() == [True, False]
    assert ft.get_allocator() == NUMPY


def test_an_array_of_an_adaptor_on_the_buffer_that_ends_in_a_scope() -> None:
    buffer = ft.ScratchBuffer("1 MiB")
    limited = ft.limited(buffer, "1 MiB")
    array = limited.ones(5_000)
    with ft.scratch(buffer):
        del array
    assert (ft.stats(limited).in_use, buffer.used) == (0, 0)


def leave(scratch: Any) -> None:
    scratch.__exit__(None, None, None)


def serving(*buffers: Any) -> Any:
    """Which of the buffers serves NumPy now."""
    before = [buffer.used for buffer in buffers]
    array = np.ones(2_000, np.uint8)
    assert array.any()
    return next((buffer for buffer, used in zip(buffers, before, strict=True) if buffer.used > used), None)


def test_from_another_thread() -> None:
    """It is flagged at once; its own thread goes on with who serves next."""
    buffer, outer, kept = ft.ScratchBuffer("1 MiB"), ft.ScratchBuffer("1 MiB"), Kept()
    with ft.scratch(outer):
        scratch = ft.scratch(buffer)
        s = scratch.__enter__()
        kept.make()
        in_thread(lambda: leave(scratch))
        assert not s.is_open
        assert serving(buffer, outer) is outer
        with ft.scratch(buffer):
            churn()
        assert serving(buffer, outer) is outer
    assert kept.intact()
    assert serving(buffer, outer) is None
    assert ft.get_allocator() == NUMPY


def test_a_block_of_use_that_outlives_its_scope() -> None:
    """Leaving selects the nearest open scope, but takes nothing from whoever came in after it."""
    pool, buffer = ft.pool(), ft.ScratchBuffer("1 MiB")
    scratch, use = ft.scratch(buffer), ft.use(pool)
    scratch.__enter__()
    use.__enter__()
    leave(scratch)
    assert ft.get_allocator() == pool
    use.__exit__(None, None, None)
    assert serving(buffer) is None


def test_a_scope_that_ended_serves_no_more() -> None:
    with ft.scratch(ft.ScratchBuffer("1 MiB")) as s:
        array = s.ones(MIDDLE)
    for ask in (s.empty, s.zeros):
        with pytest.raises(RuntimeError, match=r"ended.*with firsttouch\.scratch\(\) as s"):
            ask(3)
    with pytest.raises(RuntimeError, match="ended"):
        ft.empty(10, allocator=s)
    assert array.sum() == MIDDLE
    assert ft.get_allocator() == NUMPY


def test_where_a_scope_ended_elsewhere_get_allocator_names_who_serves() -> None:
    context, scratch = contextvars.copy_context(), ft.scratch()
    context.run(scratch.__enter__)
    assert context.run(ft.get_allocator) != NUMPY
    leave(scratch)
    assert context.run(ft.get_allocator) == NUMPY


def suspended(*buffer: Any) -> Any:
    with ft.scratch(*buffer):
        yield


def test_a_context_inside_keeps_the_scopes_around_it() -> None:
    with ft.scratch(), ft.scratch():
        context = contextvars.copy_context()
    buffer = ft.buffers.default_buffer()
    with ft.scratch():
        array = context.run(np.ones, MIDDLE, np.uint8)
        assert buffer.used == 0
    del array


def test_a_buffer_is_gone_with_its_last_array_whatever_was_nested() -> None:
    storage = bytearray(2 * MIDDLE)
    with ft.scratch(ft.FixedBuffer(storage)), ft.scratch():
        np.ones(MIDDLE // 8)
    gc.collect()
    storage.extend(b"it can move again")
    with ft.scratch(ft.FixedBuffer(storage)) as scope:
        pass
    del scope
    storage.extend(b"it can move again")


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


def test_each_block_ends_its_own_scope_of_those_that_one_object_opened() -> None:
    """Also where another thread closes a generator, inside a block of its own."""
    shared, kept = ft.scratch(ft.ScratchBuffer("1 MiB")), list[Any]()

    def block() -> Any:
        with shared as scope:
            kept.append(scope)
            yield

    blocks = [block() for _ in range(3)]
    for each in blocks:
        next(each)
    blocks[0].close()
    assert [scope.is_open for scope in kept] == [False, True, True]

    def elsewhere() -> None:
        with shared as own:
            blocks[1].close()
            assert own.is_open

    in_thread(elsewhere)
    assert [scope.is_open for scope in kept] == [False, False, True]
    with contextlib.ExitStack() as stack:
        kept.append(stack.enter_context(shared))
    assert [scope.is_open for scope in kept] == [False, False, True, False]
    blocks[2].close()
    assert not kept[2].is_open


def test_contexts_end_their_own_scopes_whose_frames_have_ended() -> None:
    """A frame that ended before may have had the address of the one that ends the scope."""
    shared, contexts = ft.scratch(ft.ScratchBuffer("1 MiB")), [contextvars.copy_context() for _ in range(3)]

    def called(method: Any) -> Any:
        return method()

    scopes = [context.run(called, shared.__enter__) for context in contexts]
    for ended, context in enumerate(contexts, 1):
        context.run(called, shared.__exit__)
        assert [scope.is_open for scope in scopes] == [False] * ended + [True] * (3 - ended)
    with ThreadPoolExecutor(1) as other:
        scopes = [contexts[0].run(called, shared.__enter__), other.submit(shared.__enter__).result()]
        shared.__exit__()  # in another context: it is this thread's
        assert [scope.is_open for scope in scopes] == [False, True]
        other.submit(shared.__exit__).result()
        assert not scopes[1].is_open


def started(*buffer: Any) -> Any:
    generator = suspended(*buffer)
    next(generator)
    return generator


@pytest.mark.parametrize("elsewhere", [False, True])
def test_scopes_that_overlap_for_ever_keep_nothing(elsewhere: bool) -> None:
    """Whoever closes them: this thread, or another one."""
    with ThreadPoolExecutor(1) as other:

        def turns(number: int) -> int:
            generator = started()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(number):
                storages.append(weakref.ref(storage := NUMPY.empty(4096, np.uint8)))
                following = started(ft.FixedBuffer(storage))
                other.submit(generator.close).result() if elsewhere else generator.close()
                generator = following
            return tracemalloc.get_traced_memory()[0] - before

        storages: list[Any] = []
        tracemalloc.start()
        try:
            turns(10)
            assert turns(500) < 100_000  # without the GIL some is freed later
        finally:
            tracemalloc.stop()
    assert sum(storage() is not None for storage in storages) <= 4


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_scopes_around_serve_whatever_ended_between(closed: int) -> None:
    buffer = ft.ScratchBuffer("1 MiB")
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


def test_an_interrupt_leaves_no_scope_open() -> None:
    """Wherever CPython looks for one: at the beginning of functions of Python's, and behind calls of others.

    But that behind `__enter__`, from 3.14 on, no context manager can do anything about.
    """
    buffer = ft.ScratchBuffer("1 MiB")
    shared = ft.scratch(buffer)

    @ft.scratch(buffer)
    def called() -> Any:
        return [np.ones(1000)]

    def work() -> None:
        with shared as s, ft.buffers.using_buffer(buffer):
            s.zeros(100)
            with ft.scratch(), shared:
                called()

    left = interrupted = 0

    def interrupt(frame: Any, event: str, function: Any) -> None:
        nonlocal left
        left -= event == "call" or (event == "c_return" and function.__name__ != "__enter__")
        if left == 0:
            raise KeyboardInterrupt

    work()  # it fills caches
    before, home = ft.get_allocator(), ft.buffers.default_buffer()
    while left == 0:
        left = interrupted = interrupted + 1
        sys.setprofile(interrupt)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert ft.get_allocator() == before, f"interrupt {interrupted}"
        assert ft.buffers.default_buffer() is home
    assert interrupted > 20

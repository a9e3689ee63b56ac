"""Scopes that end out of order, twice, or elsewhere: closing sets a flag, and the nearest open scope serves next."""

import contextvars
import random
import threading
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import MIDDLE, Kept, churn

pytestmark = pytest.mark.quick

NUMPY = ft.numpy_default()


def leave(scratch: Any) -> None:
    scratch.__exit__(None, None, None)


def serving(*buffers: Any) -> Any:
    """Which of the buffers serves NumPy now."""
    before = [buffer.used for buffer in buffers]
    array = np.ones(MIDDLE, np.uint8)
    assert array.any()
    return next((buffer for buffer, used in zip(buffers, before, strict=True) if buffer.used > used), None)


def test_the_outer_one_first() -> None:
    buffers, kept = [ft.ScratchBuffer() for _ in range(3)], Kept()
    one, two, three = (ft.scratch(buffer) for buffer in buffers)
    for scratch in (one, two, three):
        scratch.__enter__()
        kept.make()
    leave(one)
    assert serving(*buffers) is buffers[2]
    leave(three)
    assert serving(*buffers) is buffers[1]
    churn()
    leave(two)
    assert serving(*buffers) is None
    assert ft.get_allocator() == NUMPY
    assert kept.intact()
    kept.clear()
    assert [buffer.used for buffer in buffers] == [0, 0, 0]


def test_two_on_one_buffer_the_outer_one_first() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    outer, inner = ft.scratch(buffer), ft.scratch(buffer)
    one = outer.__enter__()
    kept.make()
    two = inner.__enter__()
    kept.make()
    leave(outer)
    assert (one.is_open, two.is_open) == (False, True)
    kept.make()
    churn()
    assert kept.intact()
    leave(inner)
    churn()
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0


@pytest.mark.parametrize("seed", range(20))
def test_any_order(seed: int) -> None:
    dice, kept = random.Random(seed), Kept()
    buffers = [ft.ScratchBuffer("64 KiB"), ft.ScratchBuffer(), ft.FixedBuffer("4 MiB")]
    open_: list[tuple[Any, Any]] = []
    for _ in range(60):
        if dice.random() < 0.5:
            buffer = dice.choice(buffers)
            open_.append((ft.scratch(buffer), buffer))
            open_[-1][0].__enter__()
        elif open_:
            leave(open_.pop(dice.randrange(len(open_)))[0])
        assert serving(*buffers) is (open_[-1][1] if open_ else None)
        kept.make(dice.choice([2000, 9000, MIDDLE]))
        if dice.random() < 0.4:
            kept.arrays.pop(dice.randrange(len(kept)))
        churn(1)
        assert kept.intact()
    while open_:
        leave(open_.pop(dice.randrange(len(open_)))[0])
    assert ft.get_allocator() == NUMPY
    kept.clear()
    assert [buffer.used for buffer in buffers] == [0, 0, 0]


def test_a_second_time_nothing_happens() -> None:
    buffer = ft.ScratchBuffer()
    scratch = ft.scratch(buffer)
    with scratch as s:
        pass
    leave(scratch)
    leave(scratch)
    assert not s.is_open
    buffer.reset()
    with ft.scratch(buffer) as other:
        leave(scratch)
        assert other.is_open
        assert serving(buffer) is buffer


def test_from_another_thread() -> None:
    """It is flagged at once; its own thread goes on with who serves next."""
    buffer, outer, kept = ft.ScratchBuffer(), ft.ScratchBuffer(), Kept()
    with ft.scratch(outer):
        scratch = ft.scratch(buffer)
        s = scratch.__enter__()
        kept.make()
        thread = threading.Thread(target=leave, args=(scratch,))
        thread.start()
        thread.join()
        assert not s.is_open
        assert serving(buffer, outer) is outer
        with ft.scratch(buffer):
            churn()
        assert serving(buffer, outer) is outer
    assert kept.intact()
    assert serving(buffer, outer) is None
    assert ft.get_allocator() == NUMPY


def test_from_another_context() -> None:
    buffer, other, kept = ft.ScratchBuffer(), ft.ScratchBuffer(), Kept()
    scratch = ft.scratch(buffer)
    contextvars.copy_context().run(scratch.__enter__)
    with ft.scratch(other):
        leave(scratch)
        kept.make()
        assert serving(buffer, other) is other
    assert ft.get_allocator() == NUMPY
    churn()
    assert kept.intact()


def test_a_block_of_use_that_outlives_its_scope() -> None:
    """Leaving selects the nearest open scope, but takes nothing from whoever came in after it."""
    pool, buffer = ft.pool(), ft.ScratchBuffer()
    scratch, use = ft.scratch(buffer), ft.use(pool)
    scratch.__enter__()
    use.__enter__()
    leave(scratch)
    assert ft.get_allocator() == pool
    use.__exit__(None, None, None)
    assert serving(buffer) is None


def test_a_scope_that_ended_serves_no_more() -> None:
    with ft.scratch(ft.ScratchBuffer()) as s:
        array = s.ones(MIDDLE)
    for ask in (lambda: s.empty(3), lambda: s.zeros(3), lambda: s.copy(array), lambda: s.alloc(10), lambda: s.eye(200)):
        with pytest.raises(RuntimeError, match=r"ended.*with firsttouch\.scratch\(\) as s"):
            ask()
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

"""Incorrect use raises an error with what was given and what is accepted, and loses nothing."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import firsttouch
from tests.scratch.arrays import MIDDLE, Kept, churn

pytestmark = pytest.mark.quick

ft: Any = firsttouch  # what types forbid is tried here


def test_rewinding_out_of_order_to_anothers_mark_and_twice() -> None:
    buffer, other, kept = ft.ScratchBuffer(), ft.ScratchBuffer(), Kept()
    first = buffer.mark()
    kept.make(MIDDLE, buffer.empty)
    second = buffer.mark()
    kept.make(MIDDLE, buffer.empty)
    with pytest.raises(ValueError, match=r"mark of another buffer.*its own mark"):
        other.rewind(first)
    buffer.rewind(first)
    with pytest.raises(ValueError, match=r"rewound before.*newest first"):
        buffer.rewind(second)
    with pytest.raises(ValueError, match="rewound before"):
        buffer.rewind(first)
    for wrong in (None, 0, "mark", object()):
        with pytest.raises(TypeError, match="Mark"):
            buffer.rewind(wrong)
    churn()
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0
    assert isinstance(first, ft.buffers.Mark)


def test_marks_and_rewinds_that_are_right() -> None:
    for buffer in (ft.ScratchBuffer(), ft.FixedBuffer("4 MiB")):
        kept = Kept()
        for _ in range(200):
            outer = buffer.mark()
            kept.make(1000, buffer.empty)
            inner = buffer.mark()
            temporary = buffer.ones(MIDDLE)
            assert temporary.all()
            del temporary
            buffer.rewind(inner)
            buffer.rewind(outer)
        assert kept.intact()
        assert buffer.used <= 200 * 1024 + 64
        assert buffer.capacity <= 4 << 20
        buffer.reset()


def test_a_reset_with_scopes_open() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    with ft.scratch(buffer):
        kept.make()
        with pytest.raises(RuntimeError, match="a scope is open"):
            buffer.reset()
        with ft.scratch(buffer), pytest.raises(RuntimeError, match="2 scopes are open"):
            buffer.reset()
        churn()
    buffer.reset()
    assert kept.intact()


def test_a_reset_with_a_mark_that_nobody_rewound() -> None:
    buffer = ft.ScratchBuffer()
    with ft.scratch(buffer):
        mark = buffer.mark()
    with pytest.raises(RuntimeError, match=r"a scope is open on it \(1 by mark\(\), without a rewind\(\)\)"):
        buffer.reset()
    buffer.rewind(mark)
    buffer.reset()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ft.ScratchBuffer(0), ValueError, "invalid chunk size 0:"),
        (lambda: ft.ScratchBuffer(-1), ValueError, "chunk_size.*-1"),
        (lambda: ft.ScratchBuffer(1 << 62), ValueError, "invalid chunk size 4611686018427387904:"),
        (lambda: ft.ScratchBuffer(1 << 70), (ValueError, OverflowError), "chunk_size"),
        (lambda: ft.ScratchBuffer("many"), ValueError, "many"),
        (lambda: ft.ScratchBuffer(1.5), TypeError, "chunk_size.*float"),
        (
            lambda: ft.ScratchBuffer("1 MiB", limit="1 KiB"),
            ValueError,
            "a limit of 1 KiB is less than one chunk of 1 MiB",
        ),
        (lambda: ft.ScratchBuffer(limit=-5), ValueError, "limit.*-5"),
        (lambda: ft.ScratchBuffer(upstream=5), TypeError, r"ScratchBuffer\(\) takes an allocator"),
        (lambda: ft.ScratchBuffer(upstream=ft.pool), TypeError, r"did you mean firsttouch\.pool\(\)"),
        (lambda: ft.FixedBuffer(0), ValueError, "FixedBuffer.*0"),
        (lambda: ft.FixedBuffer(-1), ValueError, "-1"),
        (lambda: ft.FixedBuffer(1 << 60), MemoryError, "1 EiB"),
        (lambda: ft.FixedBuffer(2.5), TypeError, "FixedBuffer.*float|float"),
        (lambda: ft.FixedBuffer([1, 2]), TypeError, r"FixedBuffer\(\) takes .*not list"),
        (lambda: ft.FixedBuffer(b"bytes"), ValueError, "read-only bytes.*writable"),
        (lambda: ft.FixedBuffer(np.broadcast_to(1.0, (9, 9))), ValueError, "read-only ndarray|contiguous"),
        (lambda: ft.FixedBuffer(np.zeros(9)[::2]), ValueError, "ndarray that is not contiguous"),
        (lambda: ft.FixedBuffer(np.zeros((9, 9))[:, :3]), ValueError, "not contiguous.*one piece"),
        (lambda: ft.FixedBuffer(np.zeros(0)), ValueError, "no bytes"),
        (lambda: ft.FixedBuffer(np.zeros(9, object)), (ValueError, TypeError), "object"),
        (lambda: ft.scratch(5), TypeError, r"scratch\(\) takes a buffer.*not int"),
        (lambda: ft.scratch("1 MiB"), TypeError, r"scratch\(\) takes a buffer.*not str"),
        (lambda: ft.scratch(ft.pool()), TypeError, r"scratch\(\) takes a buffer"),
        (lambda: ft.scratch(ft.ScratchBuffer), TypeError, r"did you mean ScratchBuffer\(\)"),
        (lambda: ft.scratch(result="move"), ValueError, "result=.move.: give .copy. .*or .keep."),
        (lambda: ft.scratch(escape="shout"), ValueError, "escape=.shout.: give .keep., .warn. or .raise."),
        (lambda: ft.scratch(ft.ScratchBuffer(), debug=True), ValueError, "debug=True"),
        (lambda: ft.scratch()(1, 2), TypeError, "decorates one function"),
        (lambda: ft.scratch(lambda: 1).__enter__(), TypeError, "decorated function"),
    ],
)
def test_what_can_not_be_made(make: Callable[[], Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s: s.empty(-1), ValueError, "negative"),
        (lambda s: s.empty((2**40, 2**40)), ValueError, "too large|too big"),
        (lambda s: s.zeros(2**62, np.uint8), MemoryError, "4.00 EiB"),
        (lambda s: s.empty("three"), TypeError, "int"),
        (lambda s: s.empty(3, "no such type"), TypeError, "no such type|data type"),
        (lambda s: s.alloc(-1), ValueError, "nbytes.*-1"),
        (lambda s: s.alloc(1 << 63), (ValueError, OverflowError, MemoryError), "9223372036854775808"),
        (lambda s: s.alloc(1 << 62), MemoryError, "4 EiB"),
        (lambda s: s.alloc((1 << 63) - 1), (MemoryError, ValueError), "9223372036854775807"),
        (lambda s: s.alloc("lots"), ValueError, "lots"),
        (lambda s: s.alloc(None), TypeError, "nbytes"),
        (lambda s: s.alloc(10, 3), ValueError, "3"),
        (lambda s: s.alloc(10, 0), ValueError, "0"),
        (lambda s: s.alloc(10, -64), ValueError, "alignment.*-64"),
        (lambda s: s.alloc(10, 1 << 40), ValueError, "1099511627776|1 GiB"),
    ],
)
@pytest.mark.parametrize("place", [ft.ScratchBuffer, ft.FixedBuffer])
def test_what_a_scope_can_not_give(place: Any, ask: Callable[[Any], Any], error: Any, words: str) -> None:
    buffer, kept = place(), Kept()
    with ft.scratch(buffer) as s:
        kept.make()
        for giver in (s, buffer):
            with pytest.raises(error, match=words):
                ask(giver)
        kept.make(MIDDLE, s.empty)
        assert kept.intact()
    kept.clear()
    assert buffer.used == 0


def test_a_buffer_that_a_second_thread_enters() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()

    def body() -> str:
        threading.current_thread().name = "intruder"
        with pytest.raises(RuntimeError) as error, ft.scratch(buffer):
            pass
        with pytest.raises(RuntimeError):
            ft.scratch(buffer)(lambda: 1)()
        kept.make()
        return str(error.value)

    with ThreadPoolExecutor(1) as executor:
        with ft.scratch(buffer):
            kept.make()
            text = executor.submit(body).result()
        assert "'MainThread'" in text.replace('"', "'")
        assert "'intruder'" in text.replace('"', "'")
        assert executor.submit(lambda: ft.scratch(buffer)(lambda: 5)()).result() == 5
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0


def test_a_buffer_that_a_second_task_enters() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()

    async def first(entered: asyncio.Event, go: asyncio.Event) -> None:
        with ft.scratch(buffer):
            kept.make()
            entered.set()
            await go.wait()
            kept.make()

    async def main() -> str:
        entered, go = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(first(entered, go), name="owner")
        asyncio.current_task().set_name("visitor")  # type: ignore[union-attr]
        await entered.wait()
        with pytest.raises(RuntimeError) as error, ft.scratch(buffer):
            pass
        go.set()
        await task
        with ft.scratch(buffer):
            kept.make()
        return str(error.value)

    text = asyncio.run(main()).replace('"', "'")
    assert "'owner'" in text
    assert "'visitor'" in text
    assert kept.intact()


def fill_up(kept: Kept, scope: Any) -> None:
    for _ in range(100):
        kept.make(30_000, scope.empty)


def test_limits_are_kept_and_said() -> None:
    buffer, kept = ft.ScratchBuffer("256 KiB", limit="1 MiB"), Kept()
    with ft.scratch(buffer) as s:
        with pytest.raises(MemoryError) as error:
            fill_up(kept, s)
        assert "30000" in str(error.value).replace(",", "") or "29.3 KiB" in str(error.value)
        assert "1048576" in str(error.value) or "1 MiB" in str(error.value) or "1.0 MiB" in str(error.value)
        assert buffer.capacity <= 1 << 20
        assert len(kept) >= 20
        with pytest.raises(MemoryError):
            np.ones(2 << 20, np.uint8)
        kept.arrays.pop()
        kept.make(30_000, s.empty)
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0
    with ft.scratch(buffer):
        np.ones(30_000)


def test_classes_that_are_only_given_out() -> None:
    for kind in (ft.buffers.Scope, ft.buffers.Mark, ft.buffers.Buffer):
        with pytest.raises(TypeError):
            kind()

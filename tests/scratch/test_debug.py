"""Debug mode: freed memory is filled, and writes to it are found."""

import ctypes
import linecache
import re
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick


def buffers() -> Any:
    return [ft.ScratchBuffer(debug=True), ft.FixedBuffer("2 MiB", debug=True)]


@pytest.mark.parametrize("buffer", buffers(), ids=repr)
def test_freed_memory_is_filled(buffer: Any) -> None:
    with ft.scratch(buffer) as s:
        guard = s.ones(MIDDLE, np.uint8)
        array = s.ones(MIDDLE, np.uint8)
        above = s.ones(MIDDLE, np.uint8)
        address = array.ctypes.data
        del array
        found = set(ctypes.string_at(address, MIDDLE))
        assert len(found) == 1
        assert found not in ({0}, {1})
        assert guard.all()
        assert above.all()


@pytest.mark.parametrize("when", ["end", "use", "reset"])
@pytest.mark.parametrize("buffer", buffers(), ids=repr)
def test_whoever_writes_to_it_is_found(buffer: Any, when: str) -> None:
    def damaged() -> int:
        array = buffer.ones(MIDDLE, np.uint8)
        address = int(array.ctypes.data)
        del array
        ctypes.memset(address + 1_234, 0x55, 1)
        return address

    def at_the_scopes_end() -> None:
        with ft.scratch(buffer):
            damaged()

    def when_it_is_used_again() -> None:
        address = damaged()
        with ft.scratch(buffer) as s:
            again = [s.ones(MIDDLE, np.uint8) for _ in range(3)]
            assert address in [array.ctypes.data for array in again]

    def at_a_reset() -> None:
        damaged()
        buffer.reset()

    way = {"end": at_the_scopes_end, "use": when_it_is_used_again, "reset": at_a_reset}[when]
    with pytest.raises(RuntimeError, match=r"byte 1234 of .*test_debug\.py:\d+") as error:
        way()
    line = int(re.findall(r"test_debug\.py:(\d+)", str(error.value))[0])
    assert "buffer.ones(MIDDLE" in linecache.getline(__file__, line)
    with ft.scratch(buffer):
        np.ones(MIDDLE)
    buffer.reset()


def test_right_programs_run_as_ever() -> None:
    buffer, kept = ft.ScratchBuffer(debug=True), Kept()
    for _ in range(20):
        with ft.scratch(buffer) as s:
            for size in (100, MIDDLE, LARGE):
                kept.make(size, s.empty)
                assert not s.zeros(size, np.uint8).any()
            array: Any = np.ones(MIDDLE, np.uint8)
            array.resize(3 * MIDDLE, refcheck=False)
            assert not array[MIDDLE:].any()
            array.resize(1_000, refcheck=False)
            del array
            churn(1)
            kept.arrays.pop(0)
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0
    buffer.reset()


def test_the_default_buffers_debug_mode_is_another_buffer() -> None:
    with ft.scratch(debug=True) as s:
        assert s.buffer is not ft.default_buffer()
        assert "debug=True" in repr(s.buffer)
        with ft.scratch(debug=True) as again:
            assert again.buffer is s.buffer
    assert "debug=False" in repr(ft.default_buffer())


@ft.scratch(debug=True)
def wrong(kept: list[int]) -> None:
    array = np.ones(MIDDLE, np.uint8)
    kept.append(array.ctypes.data)
    del array
    ctypes.memset(kept[0], 0, 10)


def test_a_decorated_function_in_debug_mode() -> None:
    with pytest.raises(RuntimeError, match=r"scratch memory was written to.*byte 0.*test_debug\.py"):
        wrong([])

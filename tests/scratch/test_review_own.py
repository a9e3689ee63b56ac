"""Custom scratch memory: one buffer for each object, whose errors reach the caller concerned."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.buffers.default import own_buffer
from tests.scratch.arrays import MIDDLE, Kept
from tests.scratch.own_bump import Bump

pytestmark = pytest.mark.quick


class Equal(Bump):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bump)

    def __hash__(self) -> int:
        return 1


def test_nested_scopes_on_one_object_know_of_each_other() -> None:
    own, kept = Bump(), Kept()
    for _ in range(3):
        with ft.scratch(own), ft.scratch(own):
            kept.make()
        with ft.scratch(own):
            np.full(MIDDLE, 7, np.uint8)
        assert kept.intact()
    kept.clear()
    with ft.scratch(own):
        pass
    assert own.top == 0


def test_equal_objects_are_not_the_same() -> None:
    first, second = Equal(), Equal()
    with ft.scratch(first) as one, ft.scratch(second) as other:
        assert one.buffer is not other.buffer
    own = Bump()
    with ft.scratch(own) as one, ft.scratch(own) as other:
        assert one.buffer is other.buffer


def test_a_loop_that_keeps_its_last_array_goes_on() -> None:
    own = Bump()
    for _ in range(200):
        with ft.scratch(own):
            kept = np.ones(MIDDLE, np.uint8)
    del kept
    with ft.scratch(own):
        pass
    assert own.top == 0


def test_memory_is_rewound_where_the_last_array_dies_after_the_buffer() -> None:
    own = Bump()

    def call() -> int:
        with ft.scratch(own):
            array = np.ones(MIDDLE, np.uint8)
        return int(array.sum())

    for _ in range(100):
        assert call() == MIDDLE
    assert own.top == 0


class Fails(Bump):
    """Fails at its end or, where told, at its begin."""

    begins = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.log: list[Any] = []

    def mark(self) -> Any:
        if not self.begins:
            raise RuntimeError("no mark")
        self.log.append("mark")
        return len(self.log)

    def rewind(self, mark: Any) -> None:
        self.log.append(mark)
        raise RuntimeError("no rewind")


def test_errors_stay_with_their_scope() -> None:
    @ft.scratch(Fails())
    def call() -> None:
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own") as caught:
        call()
    assert any("no rewind" in note for note in caught.value.__notes__)
    own = Fails()
    buffer = own_buffer(own, "this test")
    with pytest.raises(RuntimeError, match="no rewind"):
        buffer.rewind(buffer.mark())
    own.begins = False
    with pytest.raises(RuntimeError, match="no mark"):
        buffer.mark()
    with ft.scratch() as s:
        assert s.is_open


def test_a_mark_that_fails_leaves_the_others() -> None:
    own = Fails()
    outer, inner = ft.scratch(own), ft.scratch(own)
    outer.__enter__()
    own.begins = False
    with pytest.raises(RuntimeError, match="no mark"):
        inner.__enter__()
    with pytest.raises(RuntimeError, match="no rewind"):
        outer.__exit__(None, None, None)
    assert own.log == ["mark", 1]


def test_a_mark_that_marks() -> None:
    class Nested(Bump):
        buffer: Any = None

        def mark(self) -> Any:
            if self.buffer is not None:
                buffer, self.buffer = self.buffer, None
                buffer.mark()
            return super().mark()

    own = Nested()
    own.buffer = buffer = own_buffer(own, "this test")
    buffer.rewind(buffer.mark())


def test_blocks_outside_all_scopes_come_back_with_the_last_one() -> None:
    own = Bump()
    buffer = own_buffer(own, "test")
    for _ in range(100):
        one, two = (buffer.full(own.size // 5, 7, np.uint8) for _ in range(2))
        with ft.scratch(buffer):
            np.ones(own.size // 5, np.uint8)
        assert buffer.used == one.nbytes + two.nbytes
        del one
        assert (two == 7).all()
        del two
    with ft.scratch(buffer):
        pass
    assert own.top == buffer.capacity == 0


def test_a_buffer_outside_all_scopes_is_full_where_its_memory_is() -> None:
    own = Bump()
    buffer = own_buffer(own, "test")
    kept = [buffer.full(own.size // 3, 7, np.uint8) for _ in range(2)]
    with pytest.raises(MemoryError, match="has no room"):
        buffer.empty(own.size // 2, np.uint8)
    assert all((array == 7).all() for array in kept)


@pytest.mark.parametrize("method", ["mark", "rewind"])
def test_an_error_before_a_block_outside_all_scopes_is_that_of_its_request(method: str) -> None:
    def fail(*_: Any) -> int:
        raise ZeroDivisionError("mine")

    own: Any = Bump()
    buffer = own_buffer(own, "test")
    buffer.empty(1000)  # dead, but not rewound
    if method == "mark":
        buffer.reset()
    setattr(own, method, fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        buffer.empty(1000)
    delattr(own, method)
    with ft.scratch():
        assert buffer.ones(1000).sum() == 1000
    assert buffer.used == 0

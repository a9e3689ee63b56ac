"""Custom scratch memory in Python: when it is called, marked and rewound, and how its errors are handled."""

import gc
import mmap
import weakref
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import MIDDLE, Kept, churn

pytestmark = pytest.mark.quick

ROOM = 4 << 20


class Bump:
    """The simplest there is; notes what it was told, and spoils what was rewound."""

    def __init__(self) -> None:
        self.memory = np.frombuffer(mmap.mmap(-1, ROOM), np.uint8)
        self.start = int(self.memory.ctypes.data)
        self.top = 0
        self.told: list[tuple[Any, ...]] = []

    def allocate(self, nbytes: int, alignment: int) -> int:
        address = -(-(self.start + self.top) // alignment) * alignment
        if address + nbytes > self.start + ROOM:
            return 0
        self.told.append(("allocate", nbytes, alignment))
        self.top = address + nbytes - self.start
        return address

    def mark(self) -> int:
        self.told.append(("mark", self.top))
        return self.top

    def rewind(self, mark: int) -> None:
        self.told.append(("rewind", mark))
        assert 0 <= mark <= self.top
        self.memory[mark : self.top] = 0xDD
        self.top = mark


def test_a_scope_marks_asks_and_rewinds() -> None:
    own = Bump()
    with ft.scratch(own) as s:
        assert own.told == [("mark", 0)]
        array = s.ones(MIDDLE, np.uint8)
        numpys = array + array
        assert [each for each in own.told if each[0] == "allocate" and each[1] >= MIDDLE] != []
        assert s.buffer.used >= 2 * MIDDLE
        assert np.shares_memory(own.memory, array)
        assert np.shares_memory(own.memory, numpys)
        del array, numpys
    assert own.told[-1] == ("rewind", 0)
    assert own.top == 0
    assert "Bump" in repr(s)


def test_nothing_is_rewound_while_an_array_lives_on_it() -> None:
    own, kept = Bump(), Kept()
    for _ in range(10):
        with ft.scratch(own):
            kept.make(10_000)
            np.ones(20_000)
        assert kept.intact()
    with ft.scratch(own) as s:
        churn_small()
        assert kept.intact()
        kept.clear()
        assert s.buffer.used == 0
    with ft.scratch(own):
        pass
    assert own.top == 0


def churn_small() -> None:
    for size in (2_000, 20_000):
        np.full(size, 3, np.uint8)


def test_scopes_inside_scopes_and_out_of_order() -> None:
    own, kept = Bump(), Kept()
    outer, inner = ft.scratch(own), ft.scratch(own)
    outer.__enter__()
    kept.make(5_000)
    inner.__enter__()
    kept.make(5_000)
    outer.__exit__(None, None, None)
    churn_small()
    assert kept.intact()
    inner.__exit__(None, None, None)
    churn_small()
    assert kept.intact()
    kept.clear()
    with ft.scratch(own):
        with ft.scratch(own):
            np.ones(9_000)
        np.ones(9_000)
    assert own.top == 0


def test_as_decorator_default_and_kind() -> None:
    own = Bump()

    @ft.scratch(own)
    def step(x: Any) -> Any:
        return (x + 1) * 2

    assert (step(np.ones(MIDDLE)) == 4).all()
    assert own.top == 0
    assert len(own.told) >= 3
    told = len(own.told)
    with ft.using_buffer(own), ft.scratch():
        np.ones(MIDDLE)
    assert len(own.told) > told
    assert ft.default_buffer(Bump) is ft.default_buffer(Bump)


def test_one_buffer_for_one_object_while_anyone_has_it() -> None:
    own = Bump()
    with ft.scratch(own) as one, ft.scratch(own) as two:
        assert one.buffer is two.buffer
    gone = weakref.ref(own)
    kept = Kept()
    with ft.scratch(own):
        kept.make()
    del own, one, two
    gc.collect()
    assert gone() is not None
    churn()
    assert kept.intact()
    kept.clear()
    ft.last_failure()  # what was dropped out of Python's sight goes at the next call
    assert gone() is None


class Slots:
    """Nothing refers to it weakly, and it can't be hashed."""

    __slots__ = ("allocate", "mark", "rewind")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, own: Bump) -> None:
        self.allocate, self.mark, self.rewind = own.allocate, own.mark, own.rewind


class Equal(Bump):
    """Equal to all others of its kind."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("kind", [Bump, lambda: Slots(Bump())], ids=["hashed", "not hashed"])
def test_two_scratches_of_one_object(kind: Any) -> None:
    """They share what is counted: neither rewinds what the other's arrays live on."""
    own, kept = kind(), Kept()
    outer, inner = ft.scratch(own), ft.scratch(own)
    with outer:
        with inner:
            kept.make()
        np.ones(MIDDLE)
    with ft.scratch(own):
        churn_small()
    del outer, inner
    gc.collect()
    with ft.scratch(own):
        churn_small()
    assert kept.intact()
    kept.clear()
    with ft.scratch(own) as s:
        assert s.buffer.used == 0


def test_equal_objects_are_not_the_same() -> None:
    one, two = Equal(), Equal()
    with ft.scratch(one) as first, ft.scratch(two) as second:
        assert first.buffer is not second.buffer
        assert np.shares_memory(np.ones(MIDDLE), two.memory)

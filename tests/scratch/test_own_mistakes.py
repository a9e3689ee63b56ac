"""Custom scratch memory in Python: how its exceptions and invalid results are handled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import MIDDLE, Kept, churn
from tests.scratch.test_own import ROOM, Bump

pytestmark = pytest.mark.quick


class Doing(Bump):
    """Does in `allocate` what it is told."""

    def __init__(self, act: Callable[[int], Any]) -> None:
        super().__init__()
        self.act = act

    def allocate(self, nbytes: int, alignment: int) -> Any:
        return self.act(super().allocate(nbytes, alignment))


def test_what_it_raises_comes_out_as_it_is() -> None:
    class MineError(Exception):
        pass

    mine = MineError("nothing today")

    def act(address: int) -> int:
        raise mine

    with ft.scratch(Doing(act)) as s:
        for make in (s.ones, s.zeros, s.empty):
            with pytest.raises(MineError) as error:
                make(MIDDLE)
            assert error.value is mine
        with pytest.raises(MemoryError):
            np.ones(MIDDLE)
        assert "nothing today" in str(ft.last_failure())
    assert ft.get_allocator() == ft.numpy_default()
    assert np.ones(MIDDLE).all()


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda _: None, MemoryError, "has no room"),
        (lambda _: 0, MemoryError, "has no room"),
        (lambda address: address + 8, ValueError, "not a multiple of 64"),
        (lambda address: float(address), TypeError, "returned float"),
        (lambda _: True, TypeError, "returned bool"),
        (lambda _: -64, (ValueError, MemoryError), "Doing"),
        (lambda _: 2**70, (ValueError, MemoryError), "Doing"),
    ],
    ids=["none", "zero", "misaligned", "float", "bool", "negative", "huge"],
)
def test_answers_that_are_no_address(act: Callable[[int], Any], kind: Any, words: str) -> None:
    with ft.scratch(Doing(act)) as s:
        for ask in (s.ones, s.zeros, s.alloc):
            with pytest.raises(kind, match=words):
                ask(MIDDLE)


def test_full() -> None:
    with ft.scratch(Bump()) as s:
        held = s.ones(ROOM // 2, np.uint8)
        with pytest.raises(MemoryError, match=f"{ROOM}|Bump"):
            s.ones(ROOM, np.uint8)
        assert held.all()
        assert s.ones(ROOM // 4, np.uint8).all()


@pytest.mark.parametrize("failing", ["mark", "rewind"])
def test_a_mark_or_a_rewind_that_fails(failing: str) -> None:
    own, kept = Bump(), Kept()

    def fails(*_: Any) -> int:
        raise ZeroDivisionError("mine")

    setattr(own, failing, fails)
    with pytest.raises(ZeroDivisionError, match="mine"), ft.scratch(own):
        np.ones(MIDDLE)
    assert ft.get_allocator() == ft.numpy_default()
    delattr(own, failing)
    with ft.scratch(own):
        kept.make()
    churn()
    assert kept.intact()


def test_one_that_makes_arrays_itself() -> None:
    class Busy(Bump):
        def allocate(self, nbytes: int, alignment: int) -> int:
            assert np.ones(MIDDLE).sum() == MIDDLE
            return super().allocate(nbytes, alignment)

        def mark(self) -> int:
            assert np.ones(MIDDLE).sum() == MIDDLE
            return super().mark()

    kept = Kept()
    with ft.scratch(Busy()):
        with ft.scratch(Busy()):
            kept.make()
        kept.make()
    churn()
    assert kept.intact()


def test_half_of_it_and_its_class() -> None:
    class Half:
        mark = Bump.mark
        rewind = Bump.rewind

    half: Any = Half()
    with pytest.raises(TypeError, match=r"scratch\(\) got Half, which has no allocate\(\)"):
        ft.scratch(half)
    with pytest.raises(TypeError, match=r"did you mean Bump\(\)\?"):
        ft.scratch(Bump)

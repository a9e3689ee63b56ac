"""NumPy calls foreign code while it creates an array: `__array_function__`, iterators, subclasses, allocators."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import arrays
from tests import programs
from tests.callbacks import Callbacks

pytestmark = pytest.mark.quick


class Like:
    """Answers for every function that is called with it."""

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        return function.__name__, arguments, named


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("empty", (3,)),
        ("zeros", (3,)),
        ("ones", (3,)),
        ("full", (3, 1)),
        ("array", ([1],)),
    ],
)
def test_like_is_asked(name: str, arguments: tuple[Any, ...]) -> None:
    expected = getattr(np, name)(*arguments, like=Like())
    assert getattr(ft, name)(*arguments, like=Like()) == expected
    assert getattr(ft, name)(*arguments, like=Like(), allocator=ft.pages()) == expected
    assert getattr(ft.malloc(), name)(*arguments, like=Like()) == expected
    assert expected[0] == name


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like"])
def test_prototypes_are_asked(name: str) -> None:
    prototype = Like()
    assert getattr(ft, name)(prototype, allocator=ft.pages()) == getattr(np, name)(prototype)


class Finalized(np.ndarray):
    seen: Any = None

    def __array_finalize__(self, parent: Any) -> None:
        self.seen = None if parent is None else type(parent).__name__


def test_subclasses_are_finalized() -> None:
    prototype = np.arange(5).view(Finalized)
    for name in ("empty_like", "zeros_like", "ones_like"):
        found = getattr(ft.aligned(4096), name)(prototype)
        assert type(found) is Finalized
        assert found.seen == "Finalized"
        assert type(getattr(ft.aligned(4096), name)(prototype, subok=False)) is np.ndarray


def test_blocks_are_as_before_after_errors() -> None:
    with ft.use(ft.pages()) as around:
        for wrong in ((-1,), ("x",), (2**62,)):
            with pytest.raises((ValueError, TypeError, MemoryError)):
                ft.malloc().ones(*wrong)
            assert ft.get_allocator() == around


def test_in_the_place_of_numpys_they_do_not_call_themselves() -> None:
    program = (
        "import numpy as np, numpy.ma, firsttouch as ft\n"
        f"for name in {arrays.__all__}: setattr(np, name, getattr(ft, name))\n"
        "allocator = ft.aligned(4096)\n"
        "arrays = allocator.ones(3), allocator.full(3, 2), np.linspace(0, 1, 3), np.eye(3), allocator.array([1])\n"
        "assert all(array.sum() > 0 for array in arrays)\n"
        "with ft.use(allocator): assert np.zeros_like([1]).ctypes.data % 4096 == 0\n"
        "print('fine')"
    )
    assert programs.run(program, prologue="") == "fine\n"


def test_an_exception_on_its_way_is_not_lost_in_a_free_of_ctypes() -> None:
    """The array that fromiter() began ends while the iterator's exception is set."""
    freed: list[int] = []
    callbacks = Callbacks(freed=freed.append)

    def items() -> Iterator[int]:
        yield 1
        raise KeyError("the iterator's own")

    with ft.use(callbacks.allocator()), pytest.raises(KeyError, match="the iterator's own"):
        np.fromiter(items(), "i8", count=100_000)
    assert [size for size in freed if size >= 800_000]

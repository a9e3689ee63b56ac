"""NumPy calls foreign code while it creates an array: `__array_function__`, iterators, subclasses, allocators."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import arrays
from tests import programs
from tests.callbacks import Callbacks

pytestmark = pytest.mark.quick


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


def test_no_memory_says_what_was_asked_what_there_is_and_why() -> None:
    allocator = ft.limited(ft.pool(), "1 MiB")
    kept = allocator.ones(10_000)
    with pytest.raises(MemoryError) as found:
        allocator.ones((1000, 1000))
    said = str(found.value)
    assert said.startswith("Unable to allocate 7.63 MiB for an array with shape (1000, 1000) and data type float64: ")
    assert "cannot allocate 7.63 MiB: limited() allows 1 MiB, of which 78.13 KiB are in use" in said
    cause = found.value.__cause__
    assert isinstance(cause, MemoryError)
    assert said.startswith(str(cause))
    assert str(pickle.loads(pickle.dumps(found.value))) == said
    assert kept.sum() == 10_000
    assert allocator.ones(10_000).sum() == 10_000

"""Arrays that outlive their scope, kept by whatever can refer to one: never a dangling byte."""

import contextlib
import ctypes
import functools
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import fill, intact
from tests.scratch.arrays import CHUNK, LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick


def by_capsule(array: Any) -> Any:
    """A DLPack export that nobody has taken yet."""
    capsule = array.__dlpack__()

    class Taken:
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

        def __dlpack_device__(self) -> Any:
            return (1, 0)

    return functools.cache(lambda: np.from_dlpack(Taken()))


def itself(held: Any) -> Any:
    return held


#: What holds an array, and how its bytes are read through that.
HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "itself": (itself, itself),
    "a view": (lambda array: array[:], itself),
    "a chain of views": (lambda array: array[::-1].reshape(-1)[::-1].view(), itself),
    "another type's view": (lambda array: array.view(np.int16), lambda view: view.view(np.uint8)),
    "a subclass": (lambda array: array.view(np.recarray), itself),
    "a masked array": (lambda array: np.ma.array(array, copy=False), lambda masked: masked.data),
    "strides": (np.lib.stride_tricks.as_strided, itself),
    "a memoryview": (lambda array: memoryview(array)[:], itself),
    "a cast memoryview": (lambda array: memoryview(array).cast("B"), lambda view: np.frombuffer(view, np.uint8)),
    "DLPack": (np.from_dlpack, itself),
    "a capsule": (by_capsule, lambda taken: taken()),
    "the array interface": (lambda array: np.asarray(Interface(array)), itself),
    "ctypes": (lambda array: (ctypes.c_char * array.nbytes).from_buffer(array), lambda c: np.frombuffer(c, np.uint8)),
    "C": (ctypes.py_object, lambda held: held.value),
    "a flat iterator": (lambda array: array.flat, lambda flat: flat.base),
    "an iterator": (lambda array: iter(array.reshape(2, 1, 1, -1)), lambda it: it.__reduce__()[1][0]),
    "nditer": (np.nditer, lambda it: it.operands[0]),
    "broadcast": (lambda array: np.broadcast_to(array, (2, array.size)), lambda wide: wide[1]),
}


class Interface:
    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("size", [2_000, MIDDLE, LARGE])
@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("numpys", [True, False], ids=["NumPy's", "the scope's"])
def test_whatever_holds_it(holder: Any, size: int, numpys: bool) -> None:
    buffer = ft.ScratchBuffer("1 MiB")
    with ft.scratch(buffer) as s:
        array: Any = (np if numpys else s).empty(size, np.uint8)
        fill(array, size)
        held = holder[0](array)
        del array
        churn(1)
    with ft.scratch(buffer):
        churn(1)
    assert size == LARGE or buffer.used >= size
    assert intact(np.asarray(holder[1](held)).reshape(-1), size)
    with contextlib.suppress(RuntimeError):
        buffer.reset()
    churn(1)
    assert intact(np.asarray(holder[1](held)).reshape(-1), size)
    del held
    gc.collect()
    assert buffer.used == 0


def test_what_is_in_the_array_lives_as_long() -> None:
    class Item:
        pass

    item = Item()
    gone = weakref.ref(item)
    with ft.scratch():
        objects = np.full(MIDDLE, item, object)
        strings = np.array(["long enough to be kept apart from its array" * 3] * 2_000, np.dtypes.StringDType())
    del item
    churn()
    gc.collect()
    assert all(each is gone() for each in objects)
    assert strings[1_999].endswith("array")
    del objects
    assert gone() is None


def test_a_buffer_dropped_while_arrays_live() -> None:
    kept = Kept()
    for size in (2_000, MIDDLE, LARGE):
        storage = np.empty(2 * CHUNK, np.uint8)
        gone = weakref.ref(storage)
        for make in (ft.ScratchBuffer, functools.partial(ft.FixedBuffer, storage)):
            buffer: Any = make()
            with ft.scratch(buffer) as s:
                kept.make(size)
                kept.make(size, s.empty)
            kept.make(size, buffer.empty)
            dead = weakref.ref(buffer)
            del buffer, s, make
            gc.collect()
            assert dead() is None
            churn()
            assert kept.intact()
        del storage
        assert gone() is not None
        kept.clear()
        gc.collect()
        assert gone() is None


def test_a_scope_that_nobody_ever_leaves() -> None:
    kept, buffer = Kept(), ft.ScratchBuffer("1 MiB")

    def body() -> None:
        ft.scratch(buffer).__enter__()
        kept.make()
        ft.scratch().__enter__()
        kept.make()

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    gc.collect()
    churn()
    assert kept.intact()
    kept.clear()


def test_a_buffer_on_an_array_that_an_adaptor_knows() -> None:
    limited = ft.limited(ft.pool(), "1 GiB")
    storage = limited.zeros(1 << 20, "u1")
    buffer = ft.FixedBuffer(storage)
    first = buffer.full(1000, 3, "u1")
    assert np.shares_memory(first, storage)
    del first
    other = limited.full(1 << 20, 9, "u1")
    storage[:] = 1
    assert (other == 9).all()

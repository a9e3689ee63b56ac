"""Arrays that outlive their scope, held by whatever can hold one: never a dangling byte."""

import array as arrays
import contextlib
import ctypes
import functools
import gc
import pickle
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


def by_c(array: Any) -> Any:
    """A reference that only C code has, as an extension would hold one."""
    held = ctypes.py_object(array)
    return lambda: held.value


def by_buffer(array: Any) -> Any:
    shared = (ctypes.c_char * array.nbytes).from_buffer(array)
    return lambda: np.frombuffer(shared, np.uint8)


HOLDERS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "itself": lambda array: lambda: array,
    "a view": lambda array: functools.partial(np.ndarray.view, array[:]),
    "a chain of views": lambda array: lambda view=array[::-1].reshape(-1)[::-1].view(): view,
    "another type's view": lambda array: lambda view=array.view(np.int16): view.view(np.uint8),
    "a subclass": lambda array: lambda view=array.view(np.recarray): np.asarray(view),
    "a masked array": lambda array: lambda masked=np.ma.array(array, copy=False): masked.data,
    "strides": lambda array: lambda view=np.lib.stride_tricks.as_strided(array): view,
    "a memoryview": lambda array: lambda view=memoryview(array)[:]: np.asarray(view),
    "a cast memoryview": lambda array: lambda view=memoryview(array).cast("B"): np.frombuffer(view, np.uint8),
    "DLPack": lambda array: lambda taken=np.from_dlpack(array): taken,
    "a capsule": by_capsule,
    "the array interface": lambda array: lambda view=np.asarray(Interface(array)): view,
    "ctypes": by_buffer,
    "C": by_c,
    "a flat iterator": lambda array: lambda flat=array.flat: flat.base,
    "an iterator": lambda array: lambda it=iter(array.reshape(2, -1)): next(it).base,
    "nditer": lambda array: lambda it=np.nditer(array): it.operands[0],
    "broadcast": lambda array: lambda wide=np.broadcast_to(array, (2, array.size)): wide[1],
}


class Interface:
    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("size", [2_000, MIDDLE, LARGE])
@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("numpys", [True, False], ids=["NumPy's", "the scope's"])
def test_whatever_holds_it(holder: Any, size: int, numpys: bool) -> None:
    buffer = ft.ScratchBuffer()
    with ft.scratch(buffer) as s:
        array: Any = (np if numpys else s).empty(size, np.uint8)
        fill(array, size)
        held = holder(array)
        del array
        churn(1)
    with ft.scratch(buffer):
        churn(1)
    assert buffer.used >= size
    assert intact(np.asarray(held()).reshape(-1), size)
    with contextlib.suppress(RuntimeError):
        buffer.reset()
    churn(1)
    assert intact(np.asarray(held()).reshape(-1), size)
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
    kept, buffer = Kept(), ft.ScratchBuffer()

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


def test_pickles_and_copies_are_ordinary() -> None:
    with ft.scratch() as s:
        array = s.ones(MIDDLE)
        again = pickle.loads(pickle.dumps(array))
        bytes_ = arrays.array("d", array)
    assert (again == array).all()
    assert len(bytes_) == MIDDLE


def test_from_whichever_thread_the_last_one_dies() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    for _ in range(5):
        with ft.scratch(buffer):
            for size in (2_000, MIDDLE, LARGE) * 3:
                kept.make(size)
    assert kept.intact()
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert buffer.used == 0
    buffer.reset()
    assert buffer.capacity == 0

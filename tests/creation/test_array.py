"""array(copy=None) copies if the memory is not the allocator's, and only then."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


def test_memory_of_its_own() -> None:
    pool, other = ft.pool(), ft.pool()
    array = pool.array(range(10**5))
    assert pool.array(array, copy=None) is pool.array(array, copy=False) is array
    assert pool.array(array, copy=True) is not array
    assert pool.array(array[::2], copy=None).base is array
    copied = other.array(array, copy=None)
    assert not np.shares_memory(copied, array)
    assert ft.get_allocator(copied) == other
    with pytest.raises(ValueError, match=r"does not come from pool\("):
        other.array(array, copy=False)


def test_without_an_allocator_any_memory_will_do() -> None:
    array = np.arange(10**5)
    with ft.use(ft.pool()):
        assert ft.array(array, copy=None) is array
        assert ft.array(array, copy=False) is array


@pytest.mark.parametrize("order", ["C", "F", "A", "K", None])
def test_order_and_type_are_kept_by_the_copy(order: Any) -> None:
    array = np.asfortranarray(np.arange(6000.0).reshape(60, 100))
    for given in (array, array.T, array[::2], array[:, ::-1]):
        found: Any = ft.array(given, copy=None, order=order, allocator=ft.pages())
        expected = np.array(np.asarray(given, order=order), order="K")
        assert found.strides == expected.strides
        assert (found == given).all()
    assert ft.array(array, "f4", copy=None, allocator=ft.pages()).dtype == np.float32


def test_memory_that_nobody_in_numpy_made() -> None:
    data = bytearray(5000)
    malloc = ft.malloc()
    found = ft.array(memoryview(data), copy=None, allocator=malloc)
    assert found.flags.owndata
    assert ft.get_allocator(found) == malloc
    data[0] = 7
    assert found[0] == 0


class Bringing:
    """Brings its own array whatever it is asked."""

    def __init__(self) -> None:
        self.own = np.arange(100.0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.own


def test_objects_that_bring_an_array_of_their_own() -> None:
    brings = Bringing()
    found = ft.aligned(4096).array(brings)
    assert found.tolist() == brings.own.tolist()
    assert found.ctypes.data % 4096 == 0
    own = ft.malloc().array(brings)
    assert not np.shares_memory(own, brings.own)

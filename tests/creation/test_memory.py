"""Arrays behave as ordinary arrays."""

import gc
import pickle

import numpy as np
import pytest

import firsttouch as ft
from tests.creation.kinds import ALLOCATORS

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore:the matrix subclass")]

SIZES = [1, 1000, 10**6]


@pytest.mark.parametrize("kind", ALLOCATORS)
@pytest.mark.parametrize("size", SIZES)
def test_resize_pickle_buffer_and_dlpack(kind: str, size: int) -> None:
    array = ALLOCATORS[kind]().array(np.arange(size))
    expected = np.arange(size)
    array.resize(size * 3, refcheck=False)
    assert array[:size].tolist() == expected.tolist()
    assert not array[size:].any()
    array.resize(max(1, size // 2), refcheck=False)
    expected = expected[: max(1, size // 2)]
    for protocol in (2, 5):
        assert pickle.loads(pickle.dumps(array, protocol)).tolist() == expected.tolist()
    view = memoryview(array)
    assert view.nbytes == array.nbytes
    assert np.asarray(view).ctypes.data == array.ctypes.data
    shared = np.from_dlpack(array)
    assert shared.ctypes.data == array.ctypes.data
    del array, view
    gc.collect()
    assert shared.tolist() == expected.tolist()


def test_numpys_own_by_name_is_numpys_own() -> None:
    with ft.use():
        array = ft.numpy_default().ones(10**6)
        other = ft.zeros(10**6, allocator=ft.numpy_default())
    assert ft.get_allocator(array) == ft.get_allocator(other) == ft.numpy_default()

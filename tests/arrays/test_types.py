"""Types whose memory NumPy treats specially: objects, variable-length strings, records, and nested arrays."""

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


@pytest.fixture(params=["ft.pool()", "ft.pages()", "ft.calloc()"], autouse=True)
def allocator(request: pytest.FixtureRequest) -> Iterator[ft.Allocator]:
    """Leaves dirty memory for the arrays of the test."""
    with ft.use(eval(request.param)) as made:
        dirty = [np.full(size, 0xA5, np.uint8) for size in (40_000, 400_000, 4_000_000)]
        dirty.clear()
        yield made


class Thing:
    pass


def test_objects(allocator: ft.Allocator) -> None:
    array = np.empty(50_000, object)
    assert all(item is None for item in array)
    array[:] = things = [Thing() for _ in range(50_000)]
    gone = [weakref.ref(thing) for thing in things]
    del things
    array.resize(100_000, refcheck=False)
    assert array[50_000] in (0, None)
    assert array[49_999] is gone[49_999]()
    del array
    gc.collect()
    assert not any(ref() is not None for ref in gone)
    assert np.zeros(50_000, object)[49_999] == 0


def test_strings_of_any_length() -> None:
    dtype = np.dtypes.StringDType()
    array = np.array(["short", "x" * 1000, "", "ü" * 30] * 5000, dtype=dtype)
    assert array[1::4].tolist() == ["x" * 1000] * 5000
    doubled = np.strings.add(array, array)
    assert doubled[1] == "x" * 2000
    array[1::4] = "now longer " * 200
    assert array[5] == "now longer " * 200
    assert array.astype(object)[3] == "ü" * 30
    assert np.zeros(20_000, dtype)[19_999] == ""
    assert np.empty(20_000, dtype)[19_999] == ""
    assert sorted(np.unique(array)) == sorted({"short", "now longer " * 200, "", "ü" * 30})


def test_records() -> None:
    kind = np.dtype([("a", "i4"), ("b", "f8", 3), ("c", object), ("d", [("e", "u1")])], align=True)
    array = np.zeros(10_000, kind)
    assert array["b"].sum() == 0
    array["a"] = np.arange(10_000)
    array["c"] = [str(number) for number in range(10_000)]
    array["d"]["e"] = 7
    array.resize(15_000, refcheck=False)
    assert array["a"][9_999] == 9_999
    assert array["c"][9_999] == "9999"
    assert array["d"]["e"][[0, 9_999, 14_999]].tolist() == [7, 7, 0]
    assert np.sort(array[:10_000], order="a")["c"][-1] == "9999"

"""Types whose memory NumPy treats specially: objects, variable-length strings, records, and nested arrays."""

import gc
import io
import pickle
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


def test_strings_of_fixed_length() -> None:
    array = np.array([f"name {number}" for number in range(20_000)])
    assert array[12_345] == "name 12345"
    assert np.char.upper(array)[777] == "NAME 777"
    assert array.astype("S12")[19_999] == b"name 19999"


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


def test_dates_masks_and_matrices() -> None:
    dates = np.arange("2000-01-01", "2300-01-01", dtype="M8[D]")
    assert str(dates[-1]) == "2299-12-31"
    masked = np.ma.masked_greater(np.arange(100_000), 50_000)
    assert masked.sum() == 50_000 * 50_001 // 2
    product = np.eye(300) @ np.arange(90_000.0).reshape(300, 300)
    assert np.array_equal(product, np.arange(90_000.0).reshape(300, 300))
    assert np.linalg.solve(np.eye(200) * 2, np.ones(200)).sum() == 100
    assert abs(np.fft.ifft(np.fft.fft(np.ones(100_000))) - 1).max() < 1e-12


def test_files_and_pickles_bring_the_same_back() -> None:
    array = np.random.default_rng(1).random((300, 400))
    for protocol in range(2, 6):
        assert np.array_equal(pickle.loads(pickle.dumps(array, protocol)), array)
    file = io.BytesIO()
    np.savez_compressed(file, array=array, other=np.array(["a", None], object))
    file.seek(0)
    found = np.load(file, allow_pickle=True)
    assert np.array_equal(found["array"], array)
    assert found["other"].tolist() == ["a", None]


def test_sorting_and_grouping_use_scratch_memory_too() -> None:
    values = np.random.default_rng(2).integers(0, 1000, 300_000)
    for kind in ("quicksort", "stable", "heapsort"):
        assert (np.diff(np.sort(values, kind=kind)) >= 0).all()
    order = np.lexsort((values, values % 7))
    assert (np.diff(values[order] % 7) >= 0).all()
    assert np.bincount(values).sum() == 300_000
    assert np.unique(values, return_counts=True)[1].sum() == 300_000
    assert np.concatenate([values] * 3).size == 900_000

"""ft.pagemap: each page, its source, and its node."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.sight.conftest import PAGE, fresh

pytestmark = pytest.mark.quick

ABSENT, ZERO, SMALL = ft.inspection.PageState.ABSENT, ft.inspection.PageState.ZERO, ft.inspection.PageState.SMALL
HUGE, CACHED = ft.inspection.PageState.HUGE, ft.inspection.PageState.CACHED


def test_page_by_page() -> None:
    array = fresh(6)
    array[PAGE] = 1
    int(array[4 * PAGE])
    found = ft.pagemap(array)
    assert found.dtype == np.uint8
    assert found.tolist() == [ABSENT, SMALL, ABSENT, ABSENT, ZERO, ABSENT]
    assert found.counts() == {ABSENT: 4, ZERO: 1, SMALL: 1}
    assert found.addresses.tolist() == [array.ctypes.data + page * PAGE for page in range(6)]
    assert (found.nodes >= 0).tolist() == [False, True, False, False, False, False]
    assert set(found.sources.tolist()) <= set(ft.inspection.PageSource)


def test_views_leave_pages_out() -> None:
    array = fresh(9)
    array[::PAGE][[0, 6]] = 1
    view = array[:: 3 * PAGE][::-1]
    found = ft.pagemap(view)
    assert found.tolist() == [SMALL, ABSENT, SMALL]
    assert (found.addresses - np.uintp(array.ctypes.data)).tolist() == [0, 3 * PAGE, 6 * PAGE]
    assert (found.nodes >= 0).tolist() == [True, False, True]


def test_huge_pages_are_told_from_small_ones() -> None:
    array = ft.pages(huge="thp", populate=True).zeros(8 << 20, np.uint8)
    huge = ft.inspect(array).huge
    if not huge:
        pytest.skip("the kernel made no huge page")
    counts = ft.pagemap(array).counts()
    assert counts[HUGE] * PAGE == huge
    assert set(counts) <= {HUGE, SMALL}


def test_a_file_that_this_process_did_not_touch_is_cached(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(4 * PAGE))
    found = ft.pagemap(np.memmap(tmp_path / "file", mode="r+"))
    assert found.tolist() == [CACHED] * 4


def test_many_runs_of_nodes() -> None:
    array = fresh(500)
    array[:: 2 * PAGE] = 1
    found = ft.pagemap(array)
    assert np.array_equal(found.nodes >= 0, found == SMALL)


def test_it_is_an_array() -> None:
    found = ft.pagemap(fresh(5))
    assert type(found == ABSENT) is np.ndarray
    assert type(found[1:]) is np.ndarray
    assert (found == ABSENT).mean() == 1.0
    assert int(found.sum()) == 0
    copy = found.copy()
    assert copy.addresses.tolist() == found.addresses.tolist()


def test_a_moment_stays_as_it_was() -> None:
    array = fresh(2)
    before = ft.pagemap(array)
    array[:] = 1
    assert (before.tolist(), ft.pagemap(array).tolist()) == ([ABSENT, ABSENT], [SMALL, SMALL])


def test_it_is_pickled_with_all_that_is_known() -> None:
    array = np.zeros(10**6)
    array[: 10**5] = 1
    moment = ft.pagemap(array)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        kept = pickle.loads(pickle.dumps(moment, protocol))
        assert kept.counts() == moment.counts()
        for name in ("addresses", "sources", "nodes"):
            assert np.array_equal(getattr(kept, name), getattr(moment, name))
    assert pickle.loads(pickle.dumps(moment.reshape(-1, 1))).shape == (moment.size, 1)


def test_empty() -> None:
    found = ft.pagemap(np.empty((0, 4)))
    assert (found.size, found.addresses.size, found.counts()) == (0, 0, {})

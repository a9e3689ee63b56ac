"""Inspection is exact for any array, and changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.inspection import PageState
from tests.probe import MIB
from tests.sight.conftest import PAGE, fresh

pytestmark = pytest.mark.quick

FIGURES = ("absent", "zero_page", "small", "huge", "real", "swapped")


def pages(found: ft.inspection.Inspection) -> dict[str, int]:
    """Figures that are not zero, in pages."""
    sizes = {name: getattr(found, name) for name in FIGURES}
    return {name: size // PAGE for name, size in sizes.items() if size}


def test_what_was_done_is_what_is_seen() -> None:
    array = fresh(10)
    assert pages(ft.inspect(array)) == {"absent": 10}
    int(array[: 3 * PAGE].sum())
    assert pages(ft.inspect(array)) == {"absent": 7, "zero_page": 3}
    array[2 * PAGE : 4 * PAGE] = 1
    for _ in range(2):  # looking changes nothing
        found = ft.inspect(array)
        assert pages(found) == {"absent": 6, "zero_page": 2, "small": 2, "real": 2}
    assert found.nodes is not None
    assert sum(found.nodes.values()) == 2 * PAGE


def test_where_it_lies() -> None:
    array = fresh(4)[PAGE + 24 :]
    found = ft.inspect(array)
    assert (found.address, found.pages) == (array.ctypes.data, 3)
    assert (found.nbytes, found.shape) == (3 * PAGE - 24, (3 * PAGE - 24,))
    assert "aligned to 8 bytes, 24 bytes into its page" in str(found)


def test_huge_pages() -> None:
    array = ft.pages("thp").zeros(16 * MIB, np.uint8)
    found = ft.inspect(array)
    assert (found.absent, found.address % (2 * MIB)) == (16 * MIB, 0)
    array[:] = 1
    found = ft.inspect(array)
    assert found.real == 16 * MIB
    if not found.huge:
        pytest.skip("no huge pages to be had")
    assert (found.huge, found.small) == (16 * MIB, 0)
    assert ft.inspection.pagemap(array).states.tolist() == [PageState.HUGE] * (16 * MIB // PAGE)


def test_who_made_it() -> None:
    pool = ft.pool()
    array = pool.zeros(MIB)
    assert ft.inspect(array).allocator == pool
    origin = ft.inspect(array).receipt
    assert origin is not None
    assert origin.origin in str(ft.inspect(array))


def test_the_receipt() -> None:
    array = ft.pages(populate=True, numa=0).zeros(MIB, np.uint8)
    found = ft.inspect(array[::-1][5:])
    assert found.receipt is not None
    assert found.receipt.populated
    assert found.absent == 0
    rows = {line[:18].strip() for line in str(found).splitlines()}
    assert {"asked", "granted"} <= rows
    assert found.receipt.nbytes == MIB


def test_backwards_and_in_steps() -> None:
    array = fresh(100)
    array[:: 3 * PAGE] = 1
    written = array[:: 3 * PAGE]
    missing = array[PAGE :: 3 * PAGE]
    for view in (written, written[::-1], written.reshape(2, 17)[::-1, ::-1]):
        found = ft.inspect(view)
        assert pages(found) == {"absent": 66, "small": 34, "real": 34}
        assert found.address == view.ctypes.data
    assert pages(ft.inspect(missing[::-1])) == {"absent": 65, "small": 32, "real": 32}
    assert ft.inspect(array.reshape(100, PAGE)[:, 7]).pages == 100
    assert ft.inspect(array[::-1]).pages == 100


@pytest.mark.parametrize("shape", [0, (3, 0), (0, 5)])
def test_empty(shape: int | tuple[int, ...]) -> None:
    found = ft.inspect(np.empty(shape))
    assert (found.pages, found.nbytes, pages(found), found.nodes) == (0, 0, {}, {})
    assert "0 bytes" in str(found)


def test_a_memory_map(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(8 * PAGE))
    mapped = np.memmap(path, np.uint8, "r+")
    found = ft.inspect(mapped)
    assert found.allocator is None
    assert pages(found) == {"absent": 8}
    assert ft.inspection.pagemap(mapped).states.tolist() == [PageState.ABSENT] * 8
    mapped[3 * PAGE] = 1
    found = ft.inspect(mapped)
    assert found.real
    assert found.real + (found.absent or 0) == 8 * PAGE  # the kernel may map neighbours, too


@pytest.mark.parametrize("wrong", [[1, 2], None, b"bytes", 3, np.float64(1), "a", memoryview(b"x")])
def test_not_an_array(wrong: Any) -> None:
    name = type(wrong).__name__
    for function in (ft.inspect, ft.inspection.pagemap):
        with pytest.raises(TypeError, match=rf"takes a NumPy array, not .*{name}"):
            function(wrong)


def test_the_text_is_a_table() -> None:
    array = fresh(4)
    array[0] = 1
    found = ft.inspect(array)
    text = str(found)
    assert repr(found) == text
    for words in ("array of uint8, 16,384: 16 KiB", "none of NumPy's or firsttouch's", "4 of 4 KiB", "75 %", "on node"):
        assert words in text


ABSENT, ZERO, SMALL = PageState.ABSENT, PageState.ZERO, PageState.SMALL


def test_page_by_page() -> None:
    array = fresh(6)
    array[PAGE] = 1
    int(array[4 * PAGE])
    found = ft.inspection.pagemap(array)
    assert found.states.dtype == np.uint8
    assert found.states.tolist() == [ABSENT, SMALL, ABSENT, ABSENT, ZERO, ABSENT]
    assert found.addresses.tolist() == [array.ctypes.data + page * PAGE for page in range(6)]
    assert (found.nodes >= 0).tolist() == [False, True, False, False, False, False]


def test_is_backed() -> None:
    array = fresh(4)
    assert not ft.inspect(array).is_backed
    array[: 3 * PAGE] = 1
    assert not ft.inspect(array).is_backed
    assert ft.inspect(array[: 3 * PAGE]).is_backed
    int(array[3 * PAGE])
    assert not ft.inspect(array).is_backed
    array[3 * PAGE] = 0  # zeros of its own
    assert ft.inspect(array).is_backed
    assert ft.inspect(np.empty(0)).is_backed

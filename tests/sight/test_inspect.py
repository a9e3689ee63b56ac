"""ft.inspect: exact for any array, and without changing anything."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB
from tests.sight.conftest import PAGE, fresh

pytestmark = pytest.mark.quick

FIGURES = ("absent", "zero_page", "small", "huge", "real", "swapped", "cached", "locked")


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
    assert (found.address, found.offset, found.alignment) == (array.ctypes.data, 24, 8)
    assert (found.page_size, found.pages, found.nbytes, found.shape) == (PAGE, 3, 3 * PAGE - 24, (3 * PAGE - 24,))


def test_huge_pages() -> None:
    array = ft.pages("thp").zeros(16 * MIB, np.uint8)
    found = ft.inspect(array)
    assert (found.absent, found.alignment >= 2 * MIB) == (16 * MIB, True)
    array[:] = 1
    found = ft.inspect(array)
    assert found.real == 16 * MIB
    if not found.huge:
        pytest.skip("no huge pages to be had")
    assert (found.huge, found.small) == (16 * MIB, 0)


def test_who_made_it() -> None:
    pool = ft.pool()
    array = pool.zeros(MIB)
    assert ft.inspect(array).allocator == pool
    assert ft.inspect(array[5:]).allocator == pool
    assert ft.inspect(np.zeros(3)).allocator == ft.numpy_default()
    assert ft.inspect(fresh(1)).allocator is None
    assert ft.inspect(array).receipt is None


def test_the_receipt() -> None:
    array = ft.pages(populate=True, numa=0).zeros(MIB, np.uint8)
    found = ft.inspect(array[::-1][5:])
    assert found.receipt is not None
    assert found.receipt.populated
    assert found.absent == 0
    rows = {line[:18].strip() for line in str(found).splitlines()}
    assert {"asked", "granted"} <= rows
    assert found.as_dict()["receipt"]["nbytes"] == MIB
    json.dumps(found.as_dict())


def test_backwards_and_in_steps() -> None:
    array = fresh(100)
    array[:: 3 * PAGE] = 1
    written = array[:: 3 * PAGE]
    missing = array[PAGE :: 3 * PAGE]
    for view in (written, written[::-1], written.reshape(2, 17)[::-1, ::-2]):
        found = ft.inspect(view)
        assert pages(found) == {"small": view.size, "real": view.size}
        assert found.address == view.ctypes.data
    assert pages(ft.inspect(missing[::-1])) == {"absent": 33}
    assert ft.inspect(array.reshape(100, PAGE)[:, 7]).pages == 100
    assert ft.inspect(array[::-1]).pages == 100


@pytest.mark.parametrize("shape", [0, (3, 0), (0, 5)])
def test_empty(shape: int | tuple[int, ...]) -> None:
    found = ft.inspect(np.empty(shape))
    assert (found.pages, found.nbytes, pages(found), found.nodes) == (0, 0, {}, {})
    assert "0 bytes" in str(found)


def test_one_element() -> None:
    found = ft.inspect(np.array(3.5))
    assert (found.pages, found.shape, found.real) == (1, (), PAGE)
    assert "a single element" in str(found)
    assert ft.inspect(np.broadcast_to(np.array(1.0), (1000, 1000))).pages == 1


def test_read_only_and_other_types() -> None:
    array = np.ones(1000)
    array.flags.writeable = False
    assert ft.inspect(array).absent == 0
    for other in (np.array(["a", None]), np.zeros(3, "i4,f8"), np.ma.ones(3), np.array(["x"], np.dtypes.StringDType())):
        assert ft.inspect(other).real


def test_a_memory_map(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(8 * PAGE))
    mapped = np.memmap(path, np.uint8, "r+")
    found = ft.inspect(mapped)
    assert found.allocator is None
    assert pages(found) == {"cached": 8}
    assert "page cache only" in str(found)
    mapped[3 * PAGE] = 1
    found = ft.inspect(mapped)
    assert found.real
    assert found.real + (found.cached or 0) == 8 * PAGE  # the kernel may map neighbours, too


@pytest.mark.parametrize("wrong", [[1, 2], None, b"bytes", 3, np.float64(1), "a", memoryview(b"x")])
def test_not_an_array(wrong: Any) -> None:
    name = type(wrong).__name__
    for function in (ft.inspect, ft.pagemap, ft.is_backed, ft.check_backed, ft.inspection.plot_pagemap):
        with pytest.raises(TypeError, match=rf"takes a NumPy array, not .*{name}.*numpy.asarray"):
            function(wrong)


def test_every_figure_has_its_source() -> None:
    found = ft.inspect(fresh(3))
    assert set(found.sources) == {*FIGURES, "nodes"}
    assert all(found.sources.values())


def test_text_table_and_dict() -> None:
    array = fresh(4)
    array[0] = 1
    found = ft.inspect(array)
    text = str(found)
    assert repr(found) == text
    for words in ("array of uint8, 16,384: 16 KiB", "none: NumPy did not allocate it", "4 of 4 KiB", "75 %", "on node"):
        assert words in text
    assert all(source in text for name, source in found.sources.items() if name not in ("cached", "real"))
    html = found._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") == len(text.splitlines()) - 1
    as_dict = json.loads(json.dumps(found.as_dict()))
    assert (as_dict["absent"], as_dict["allocator"], as_dict["shape"]) == (3 * PAGE, None, [4 * PAGE])


def test_html_is_escaped() -> None:
    html = ft.inspect(np.zeros(3, [("<b>", "f8")]))._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html

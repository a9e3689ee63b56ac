"""realloc in place, and by NumPy's text readers, which grow arrays without the GIL. More: law 8 in tests/contract."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB

pytestmark = pytest.mark.quick

ALLOCATORS = ["ft.pool()", "ft.pool(ft.pages())", "ft.pages()", "ft.pages(huge='thp')"]
OTHERS = ["ft.malloc()", "ft.aligned(64)", "ft.numpy_default()"]


@pytest.fixture(params=ALLOCATORS + OTHERS)
def allocator(request: pytest.FixtureRequest) -> Iterator[ft.Allocator]:
    made = eval(request.param)
    with ft.use(made):
        yield made


@pytest.mark.parametrize("expression", ALLOCATORS)
def test_a_block_grows_where_it_stands(expression: str) -> None:
    with ft.use(eval(expression)) as allocator:
        array = np.ones(200 * KIB, np.uint8)
        at = array.__array_interface__["data"][0]
        array.resize(100 * KIB, refcheck=False)
        array.resize(180 * KIB, refcheck=False)
        assert array.__array_interface__["data"][0] == at
        assert ft.stats(allocator).in_use in (180 * KIB, ft.stats(allocator).active)


def numbers(count: int) -> str:
    return " ".join(str(number) for number in range(count))


def test_text_is_read_into_growing_arrays(allocator: ft.Allocator, tmp_path: Path) -> None:
    count = 60_000
    text, right = numbers(count), np.arange(count)
    (tmp_path / "numbers").write_text(text)
    assert np.array_equal(np.fromstring(text, np.int64, sep=" "), right)
    assert np.array_equal(np.fromfile(tmp_path / "numbers", np.int64, sep=" "), right)
    (tmp_path / "lines").write_text(text.replace(" ", "\n"))
    assert np.array_equal(np.loadtxt(tmp_path / "lines", np.int64), right)
    assert np.array_equal(np.fromiter(iter(range(count)), np.int64), right)
    assert np.fromstring("", sep=" ").size == 0
    assert np.fromstring("7", np.int64, sep=",")[0] == 7


def test_many_threads_read_text_while_others_allocate(tmp_path: Path) -> None:
    """The readers reallocate without the GIL, so truly beside each other."""
    ft.install(ft.pool(decay=0.1))
    count = 40_000
    (tmp_path / "lines").write_text(numbers(count).replace(" ", "\n"))
    (tmp_path / "numbers").write_text(numbers(count))
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            np.full(100 * KIB, 1, np.uint8)
            ft.trim(ft.get_allocator())

    def read(turn: int) -> bool:
        found = np.fromfile(tmp_path / "numbers", np.int64, sep=" ") if turn % 2 else np.loadtxt(tmp_path / "lines")
        return np.array_equal(found, np.arange(count))

    churner = threading.Thread(target=churn)
    churner.start()
    try:
        with ThreadPoolExecutor(min(4, (os.cpu_count() or 1) + 1)) as executor:
            assert all(executor.map(read, range(24)))
    finally:
        stop.set()
        churner.join()

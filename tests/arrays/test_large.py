"""What the contract in Rust leaves out: sparse and very large arrays, and readers that grow arrays without the GIL."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB, MIB

pytestmark = pytest.mark.quick

SMALL = ft.stats().small_limit
SIZES = [
    SMALL,
    33 * KIB,
    64 * KIB + 1,
    200 * KIB,
    300 * KIB + 7,
    256 * KIB,
    MIB - 1,
    MIB,
    2 * MIB,
    3 * MIB + 5,
    4 * MIB,
    4 * MIB + 1,
]
SIZES += [7 * MIB, 16 * MIB, 20 * MIB, 32 * MIB - 1, 32 * MIB, 32 * MIB + 4097, 50 * MIB]

POOLS = ["ft.pool()", "ft.pool(decay=0)", "ft.pool(ft.pages())", "ft.pool(max_idle=0)", "ft.pages()", "ft.pages('thp')"]


@pytest.mark.parametrize("expression", POOLS)
def test_zeros_only_partly_written_before(expression: str) -> None:
    """What is not there need not be cleared; what is, on the last page too, must be."""
    with ft.use(eval(expression)) as allocator:
        for size in SIZES:
            for step in (MIB, 4096):
                ft.trim(allocator)
                sparse = np.zeros(size, np.uint8)
                sparse[step // 2 :: step] = 1
                sparse[[0, -1]] = 1
                del sparse
                assert not np.zeros(size, np.uint8).any(), (size, step)


def test_four_gibibytes_and_more() -> None:
    """Lengths and counts of units beyond 32 bits; only a few pages of it are touched."""
    with ft.use(ft.pool()) as pool:
        array = np.zeros((4 << 30) + 12345, np.uint8)
        array[:: 1 << 29] = 7
        array[-1] = 7
        assert int(array[:: 1 << 29].sum()) == 7 * 9
        found = ft.stats(pool)
        assert found.in_use == array.size
        assert found.active >= array.size
        del array
    assert ft.stats(pool).in_use == 0
    ft.trim(pool)


def numbers(count: int) -> str:
    return " ".join(str(number) for number in range(count))


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

"""What the contract in Rust leaves out: very large arrays, and readers that grow arrays without the GIL."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB

pytestmark = pytest.mark.quick


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

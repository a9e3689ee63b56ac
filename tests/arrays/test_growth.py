"""realloc in both directions: ndarray.resize, and NumPy's text readers, which grow arrays without the GIL."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB, MIB, Bytes, fill, intact

pytestmark = pytest.mark.quick

ALLOCATORS = ["ft.pool()", "ft.pool(ft.pages())", "ft.pages()", "ft.pages(huge='thp')"]
OTHERS = ["ft.malloc()", "ft.calloc()", "ft.aligned(64)", "ft.aligned('2 MiB')", "ft.numpy_default()"]
STEPS = [1, 31 * KIB, 32 * KIB, 33 * KIB, 60 * KIB, 200 * KIB, MIB, 2 * MIB - 1, 2 * MIB, 5 * MIB, 8 * MIB, 33 * MIB]


@pytest.fixture(params=ALLOCATORS + OTHERS)
def allocator(request: pytest.FixtureRequest) -> Iterator[ft.Allocator]:
    made = eval(request.param)
    with ft.use(made):
        yield made


def resized(array: Bytes, size: int, seed: int) -> None:
    kept = min(array.size, size)
    array.resize(size, refcheck=False)
    assert intact(array, seed, kept)
    assert not array[kept:].any()
    fill(array, seed)


def test_up_and_down_again(allocator: ft.Allocator) -> None:
    array = np.empty(5, np.uint8)
    fill(array, 3)
    for size in [*STEPS, *reversed(STEPS)]:
        resized(array, size, 3)
    del array
    assert ft.stats(allocator).active == 0


def test_from_any_size_to_any_other(allocator: ft.Allocator) -> None:
    sizes = STEPS[1:-1]
    for at, before in enumerate(sizes):
        for after in sizes[at % 3 :: 3]:
            array = np.empty(before, np.uint8)
            fill(array, at)
            resized(array, after, at)


def test_neighbours_are_not_touched(allocator: ft.Allocator) -> None:
    arrays = [np.empty(100 * KIB, np.uint8) for _ in range(40)]
    for seed, array in enumerate(arrays):
        fill(array, seed)
    del arrays[1::4]
    seeds = [seed for seed in range(40) if seed % 4 != 1]
    for turn in range(120):
        at = turn * 7 % len(arrays)
        resized(arrays[at], 20 * KIB + turn * 9973 % (3 * MIB), seeds[at])
        assert all(intact(array, seed) for array, seed in zip(arrays, seeds, strict=True))


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

"""Touching, collapsing and moving existing arrays; one node suffices for these, several are in tests/numa."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.placement import there

pytestmark = pytest.mark.quick

MIB = 1 << 20


def lazy(nbytes: int) -> np.ndarray:
    return ft.pages().zeros(nbytes, np.uint8)


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_touched_pages_are_there_and_unchanged(threads: Any) -> None:
    array = lazy(24 * MIB + 5)
    array[1 :: 9 * MIB] = 5
    ft.touch(array, threads)
    assert there(array) >= array.nbytes
    assert array.sum() == 15
    assert not array[0]


def test_a_file_that_was_cut_short_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    array = np.memmap(file)
    os.truncate(file, 5000)
    with pytest.raises((MemoryError, OSError), match="a mapped file is shorter now than it was"):
        ft.touch(array)


def test_views_are_touched_from_their_first_to_their_last_byte() -> None:
    array = lazy(16 * MIB)
    ft.touch(array[12 * MIB : 4 * MIB : -3])
    assert 8 * MIB <= there(array) <= 9 * MIB
    ft.touch(array[:0])
    ft.touch(np.array(3.0))


def test_read_only_arrays_are_read() -> None:
    array = lazy(4 * MIB)
    array.flags.writeable = False
    ft.touch(array)
    assert there(array) < MIB  # the kernel's page of zeros


def test_others_may_write_meanwhile() -> None:
    array, rounds = lazy(8 * MIB).view(np.int64), 30
    stop = threading.Event()

    def write() -> None:
        for _ in range(rounds):
            array[:] += 1
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stop.is_set():
        ft.touch(array, 3)
    writer.join()
    assert (array == rounds).all()


def test_migration_to_where_it_is() -> None:
    array = ft.pages().zeros((64, MIB // 8))
    array[:48] = 1.0
    done = ft.migrate(array, 0)
    assert (done.moved, done.failed, done.why_not) == (0, 0, None)
    assert done.stayed >= 48 * MIB
    assert done.absent >= 15 * MIB
    assert ft.migrate(array.T, 0).failed == 0
    assert ft.migrate(array, "interleave:all").failed == 0
    for wrong in ("blocked:0", "bind:99", "nowhere"):
        with pytest.raises(ValueError, match=wrong.partition(":")[0]):
            ft.migrate(array, wrong)
    assert ft.migrate(array[:0], 0) == (0, 0, 0, 0, None)


@pytest.mark.parametrize("started", [0, 2])
def test_what_threads_that_do_not_start_would_have_touched_is_touched(started: int) -> None:
    array = ft.pages().empty(16 << 20, "u1")
    _firsttouch.fail_calls(["spawn"], started, 1 << 40)
    try:
        ft.touch(array, threads=4)
    finally:
        _firsttouch.fail_calls([], 0, 0)
    assert ft.inspect(array).is_backed

"""use() and threads: each has its own."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick

NUMPY = ft.numpy_default()
#: From Python 3.14 on that can be asked for; free-threaded builds do it always.
INHERITS = bool(getattr(sys.flags, "thread_inherit_context", 0))


def in_thread(body: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def caught() -> None:
        try:
            body()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=caught)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


@pytest.mark.skipif(INHERITS, reason="threads inherit their starter's context here")
def test_a_new_thread_does_not_inherit_it() -> None:
    def body() -> None:
        assert ft.get_allocator() == NUMPY
        with ft.use(ft.calloc()) as calloc:
            assert ft.get_allocator() == calloc

    with ft.use() as pool:
        in_thread(body)
        assert ft.get_allocator() == pool


def test_the_same_object_open_in_two_threads() -> None:
    scope = ft.use(ft.pool())
    entered, left = threading.Barrier(2), threading.Event()
    right: list[bool] = []

    def body() -> None:
        with scope as pool:
            entered.wait()
            left.wait()
            right.append(ft.get_allocator() == pool)
        right.append(ft.get_allocator() == NUMPY)

    thread = threading.Thread(target=body)
    thread.start()
    with scope:
        entered.wait()
    here = ft.get_allocator()
    left.set()
    thread.join()
    assert here == NUMPY
    assert right == [True, True]


def test_many_threads_in_and_out() -> None:
    pools = [ft.pool(decay=0.1), ft.pool(ft.pages()), ft.pages(), ft.calloc(), NUMPY]

    def body(seed: int) -> bool:
        right = True
        for turn in range(100):
            allocator = pools[(seed + turn) % len(pools)]
            with ft.use(allocator):
                array = np.full(40_000 + turn * 1000, turn % 200, np.uint8)
                right &= ft.get_allocator(array) == allocator
            right &= bool((array == turn % 200).all()) and ft.get_allocator() == NUMPY
        return right

    with ThreadPoolExecutor(4) as executor:
        assert all(executor.map(body, range(8)))


def test_arrays_are_freed_in_other_threads() -> None:
    with ft.use(ft.pool()) as pool:
        arrays = [np.ones(MIB, np.uint8) for _ in range(50)]
    assert ft.stats(pool).blocks == 50
    in_thread(arrays.clear)
    assert ft.stats(pool).blocks == 0
    assert ft.stats(pool).in_use == 0


def test_a_use_wins_over_install_in_its_thread_only() -> None:
    ft.install()
    installed = ft.get_allocator()

    def body() -> None:
        assert ft.get_allocator(np.empty(MIB)) == (own if INHERITS else installed)

    with ft.use(ft.pool()) as own:
        in_thread(body)
        assert ft.get_allocator(np.empty(MIB)) == own
    assert ft.get_allocator(np.empty(MIB)) == installed

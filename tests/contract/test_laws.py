"""Each law of the design, as observed through NumPy's arrays."""

import gc
import os
import re
import threading
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.contract.stacks import BUFFERS, STACKS, make
from tests.probe import MIB, fill, intact

SIZES = (0, 1, 63, 64, 65, 1000, 4096, 16_383, 16_384, 100_000, MIB + 1, 5 * MIB)


@pytest.fixture(params=(*STACKS, *BUFFERS))
def allocator(request: pytest.FixtureRequest) -> ft.Allocator:
    return make(request.param)


def written(allocator: ft.Allocator, size: int, seed: int) -> Any:
    array = allocator.empty(size, np.uint8)
    fill(array, seed)
    return array


def test_1_alignment_and_size(allocator: ft.Allocator) -> None:
    arrays = [written(allocator, size, seed) for seed, size in enumerate(SIZES)]
    for seed, array in enumerate(arrays):
        assert array.ctypes.data % 64 == 0 or ft.get_allocator(array) == ft.numpy_default()
        assert array.flags.owndata
        assert array.flags.writeable
        assert intact(array, seed)


def test_2_zero_means_zero(allocator: ft.Allocator) -> None:
    for size in SIZES * 2:
        used = allocator.full(size, 0xEE, np.uint8)
        del used
        zeros = allocator.zeros(size, np.uint8)
        assert not zeros.any()
        zeros[...] = 0xEE


@pytest.mark.parametrize("shape", [(2**40, 2**40), (2**63 - 1,), (2**31, 2**31, 2)])
def test_3_sizes_never_wrap(allocator: ft.Allocator, shape: tuple[int, ...]) -> None:
    def kind(make: Any) -> type[BaseException]:
        with pytest.raises((ValueError, MemoryError)) as error:
            make(shape, np.float64)
        return MemoryError if issubclass(error.type, MemoryError) else error.type

    assert kind(allocator.empty) is kind(np.empty)
    assert kind(allocator.zeros) is kind(np.zeros)


def owner(maker: ft.Allocator, size: int) -> ft.Allocator:
    """Growing buffers leave large requests to their upstream, and pools small ones to NumPy."""
    growing = re.match(r"ScratchBuffer\('(\d+) KiB',", repr(maker))
    if growing and size >= int(growing[1]) * 1024 // 8:
        upstream = _firsttouch.upstream(maker)
        assert upstream is not None
        return owner(upstream, size)
    is_pool = re.match(r"(limited\()?pool\(", repr(maker))
    return ft.numpy_default() if is_pool and size < ft.stats().small_limit else maker


def test_4_an_address_knows_its_owner(allocator: ft.Allocator) -> None:
    other = ft.pool()
    for size in SIZES:
        mine, theirs = allocator.empty(size, np.uint8), other.empty(size, np.uint8)
        for array, maker in ((mine, allocator), (mine[:0], allocator), (theirs, other)):
            assert ft.get_allocator(array) == owner(maker, size)


def test_5_free_never_fails(allocator: ft.Allocator) -> None:
    arrays = [written(allocator, size, seed) for seed, size in enumerate(SIZES * 20)]
    kept = arrays[::3]
    del arrays
    gc.collect()
    assert all(intact(array, 3 * index) for index, array in enumerate(kept))


def test_6_any_thread_may_free(allocator: ft.Allocator) -> None:
    handed: list[Any] = [written(allocator, size, seed) for seed, size in enumerate(SIZES * 4)]
    wrong: list[int] = []

    def take() -> None:
        while handed:
            try:
                array = handed.pop()
            except IndexError:
                return
            array.resize(array.size // 2 + 1, refcheck=False)

    def give() -> None:
        for seed, size in enumerate(SIZES * 2):
            if not intact(written(allocator, size, seed), seed):
                wrong.append(size)

    threads = [threading.Thread(target=target) for target in (take, give, take, give)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.linux("fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # pytest's own threads, if there are any
def test_6_fork_is_safe(allocator: ft.Allocator) -> None:
    arrays = [written(allocator, size, seed) for seed, size in enumerate(SIZES)]
    child = os.fork()
    if not child:
        good = all(intact(array, seed) for seed, array in enumerate(arrays))
        arrays.clear()
        good = good and all(intact(written(allocator, size, 5), 5) for size in SIZES)
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all(intact(array, seed) for seed, array in enumerate(arrays))


def test_7_an_error_says_why_and_nothing_is_lost(allocator: ft.Allocator) -> None:
    kept = written(allocator, MIB, 7)
    for _ in range(3):
        with pytest.raises(MemoryError) as error:
            allocator.empty(1 << 52, np.uint8)
        assert str(1 << 52) in str(error.value)
        failure = ft.last_failure()
        assert failure is not None
        assert failure.asked == 1 << 52
        assert failure.reason in str(error.value)
    assert intact(kept, 7)
    assert intact(written(allocator, MIB, 8), 8)


def test_8_arrays_outlive_their_allocator(request: pytest.FixtureRequest) -> None:
    for stack in STACKS:
        allocator = make(stack)
        arrays = [written(allocator, size, seed) for seed, size in enumerate(SIZES)]
        del allocator
        gc.collect()
        others = [written(make(stack), size, 99) for size in SIZES]
        assert all(intact(array, seed) for seed, array in enumerate(arrays)), stack
        del arrays, others


def test_8_content_comes_along(allocator: ft.Allocator) -> None:
    array = written(allocator, 1000, 3)
    for size in (100_000, 5 * MIB, 20_000, 7 * MIB, 1000):
        kept = min(array.size, size)
        array.resize(size, refcheck=False)
        assert intact(array, 3, kept), size
        assert array.ctypes.data % 64 == 0 or ft.get_allocator(array) == ft.numpy_default()
        fill(array, 3)


def test_10_idle_memory_goes_home(allocator: ft.Allocator) -> None:
    del_me = [written(allocator, size, 1) for size in SIZES]
    del del_me
    ft.trim(allocator)
    assert ft.stats(allocator).idle == 0


@pytest.mark.parametrize("stack", STACKS)
def test_the_expression_makes_it_again(stack: str) -> None:
    shown = repr(make(stack))
    assert repr(make(shown)) == shown

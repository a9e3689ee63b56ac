"""What Python makes of the laws: errors, owners, reasons.

The laws themselves are checked by the contract in Rust, on all compositions, and by tests/trust, which draws any.
"""

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.probe import MIB

#: One of each kind.
STACKS = (
    "malloc()",
    "calloc()",
    "aligned(4096)",
    'pages(huge="thp")',
    "mimalloc()",
    *(["jemalloc()"] if sys.platform != "win32" else []),  # which is not built there
    "pool()",
    "pool(max_idle=0, decay=0.0)",
    "pool(malloc())",
    'limited(pool(pages()), "64 GiB")',
    'guarded(side="before")',
    'guarded(keep="8 MiB")',
    "filled(calloc(), on_allocate=None, on_free=0)",
    "limited(filled(guarded()), '1 TiB')",
)

#: Buffers, outside all scopes.
BUFFERS: dict[str, Callable[[], ft.Allocator]] = {
    "ScratchBuffer": ft.ScratchBuffer,
    "ScratchBuffer, small chunks": lambda: ft.ScratchBuffer("4 KiB", upstream="malloc()"),
    "ScratchBuffer, large chunks": lambda: ft.ScratchBuffer("64 MiB"),
    "ScratchBuffer on a buffer": lambda: ft.ScratchBuffer(upstream=ft.ScratchBuffer()),
    "FixedBuffer": lambda: ft.FixedBuffer("256 MiB"),
}


def make(stack: str) -> ft.Allocator:
    """The allocator that the expression makes, or the buffer of that name."""
    if stack in BUFFERS:
        return BUFFERS[stack]()
    with ft.use(stack) as allocator:
        return allocator


SIZES = (0, 1, 63, 64, 65, 1000, 4096, 16_383, 16_384, 100_000, MIB + 1, 5 * MIB)


@pytest.fixture(params=(*STACKS, *BUFFERS))
def allocator(request: pytest.FixtureRequest) -> ft.Allocator:
    return make(request.param)


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


def test_7_an_error_says_why_and_nothing_is_lost(allocator: ft.Allocator) -> None:
    kept = allocator.full(MIB, 7, np.uint8)
    for _ in range(3):
        with pytest.raises(MemoryError) as error:
            allocator.empty(1 << 52, np.uint8)
        assert str(1 << 52) in str(error.value)
        failure = ft.last_failure()
        assert failure is not None
        assert failure.asked == 1 << 52
        assert failure.reason in str(error.value)
    assert (allocator.full(MIB, 8, np.uint8) == 8).all()
    assert (kept == 7).all()


@pytest.mark.quick
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

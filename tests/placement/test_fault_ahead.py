"""``fault_ahead=True`` of pools and pages: the option, its statistics, and what it cannot stand on."""

import re
import time

import numpy as np
import pytest

import firsttouch as ft


def test_it_is_in_the_expression() -> None:
    pool = ft.pool(ft.pages(), fault_ahead=True)
    assert repr(pool) == "pool(pages(huge=False), max_idle=None, decay=1.0, fault_ahead=True)"
    assert repr(ft.pool(decay=2)) == "pool(pages(huge='thp'), max_idle=None, decay=2.0)"
    assert ft.empty(10, allocator=repr(pool)).size == 10


@pytest.mark.parametrize("upstream", ["malloc()", "pages(populate=True)", "numa('interleave:all')"])
def test_a_pool_over_memory_of_others_refuses_it(upstream: str) -> None:
    with pytest.raises(ValueError, match=re.escape("fault_ahead=True needs a pool that takes its pages itself")):
        ft.empty(10, allocator=f"pool({upstream}, fault_ahead=True)")


def test_pages_have_it_and_hand_it_on_to_a_pool() -> None:
    assert repr(ft.pages(fault_ahead=True)) == "pages(huge=False, fault_ahead=True)"
    assert repr(ft.pages("thp", fault_ahead=True)) == "pages(huge='thp', fault_ahead=True)"
    made = repr(ft.pool("pages(fault_ahead=True)"))
    assert made == "pool(pages(huge=False), max_idle=None, decay=1.0, fault_ahead=True)"


@pytest.mark.parametrize("other", ["populate=True", "lock=True", "numa=0", "strict=True", "huge='2M'"])
def test_pages_that_are_placed_refuse_it(other: str) -> None:
    with pytest.raises(ValueError, match=re.escape("fault_ahead=True needs base pages or huge='thp'")):
        ft.empty(10, allocator=f"pages({other}, fault_ahead=True)")


def test_numa_does_not_know_it() -> None:
    with pytest.raises(TypeError, match="fault_ahead"):
        ft.empty(10, allocator="numa(0, fault_ahead=True)")


@pytest.mark.parametrize("given", ["yes", 1, None])
def test_only_true_and_false_are_flags(given: object) -> None:
    with pytest.raises(TypeError, match="fault_ahead"):
        ft.pool(fault_ahead=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("upstream", [None, "pages()", "itself"])
def test_arrays_are_what_they_would_be(upstream: str | None) -> None:
    helped = ft.pages(fault_ahead=True) if upstream == "itself" else ft.pool(upstream, fault_ahead=True)
    with ft.use(helped):
        for turn in range(4):
            a = np.arange(8_000_000)
            b = np.zeros(8_000_000)
            assert not b.any()
            b += a
            time.sleep(0.002 * turn)
            assert np.array_equal(b, a)
            b = b[: turn * 1_000_000].copy()
    found = ft.stats(helped)
    assert 0 <= found.populated_ahead_bytes < 64 << 30
    assert ft.stats(ft.pool()).populated_ahead_bytes == 0

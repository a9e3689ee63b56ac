"""`pages` with a placement: what is accepted, what is granted, and what the receipt says."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.limits.cgroups import group
from tests.placement import granted, there
from tests.programs import quiet, run, start

pytestmark = pytest.mark.quick

MIB = 1 << 20


@pytest.mark.parametrize("populate", [True, 1, 3])
@pytest.mark.parametrize("huge", [False, "thp"])
def test_populated_pages_are_there_before_the_constructor_returns(huge: Any, populate: Any) -> None:
    lazy = ft.pages(huge, lock=False, numa="local").zeros(32 * MIB, np.uint8)
    assert there(lazy) < MIB
    array = ft.pages(huge, populate=populate).zeros(32 * MIB, np.uint8)
    assert there(array) >= 32 * MIB
    receipt = granted(array)
    assert receipt.populated
    assert receipt.threads == (populate if populate > 1 else receipt.threads)


def test_receipts_say_what_was_asked_granted_and_why_not() -> None:
    array = ft.pages("1G", numa=0).empty(8 * MIB, np.uint8)
    receipt = granted(array[::2])
    assert (receipt.nbytes, receipt.huge, receipt.numa, receipt.locked) == (8 * MIB, "thp", "bind:0", False)
    assert receipt.asked == "huge='1G', numa='bind:0'"
    assert any("huge='1G'" in why and "smaller than one such page" in why for why in receipt.why_not)
    assert ft.receipt(np.zeros(3)) is None
    assert ft.receipt(ft.malloc().zeros(10**6)) is None
    small = granted(ft.pages("2M", strict=True).empty(100))
    assert small.huge is None


def test_strict_raises_instead_of_falling_back() -> None:
    with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") as file:
        if int(file.read()):
            pytest.skip("this machine has free huge pages")
    with pytest.raises(MemoryError, match=r"as a strict placement requires: huge='2M': the kernel's pool has too few"):
        ft.pages("2M", strict=True).zeros(4 * MIB, np.uint8)
    failure = ft.last_failure()
    assert failure is not None
    assert failure.limit == "strict"


def test_more_than_there_is_is_an_error_before_the_kernel_kills() -> None:
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    asked = int(total * 0.99) & ~4095
    left = r"[\d.]+ \w+ of them are not resident, and [\d.]+ \w+ are available"
    with pytest.raises(MemoryError, match=rf"\(populate\): {left}"):
        ft.pages(populate=True).zeros(asked, np.uint8)
    with pytest.raises(MemoryError, match=rf"\(lock\): {left}"):
        ft.pages(lock=True).zeros(asked, np.uint8)


def test_more_than_a_container_has_is_an_error_too() -> None:
    program = """
        for named in ({"populate": True}, {"lock": True}, {"huge": "thp", "populate": 2}):
            print(probe.message(MemoryError, lambda: ft.pages(**named).zeros(512 << 20, "u1")))
        print(ft.pages(populate=True).zeros(16 << 20, "u1").sum())
        array = ft.pages().zeros(512 << 20, "u1")
        print(probe.message(MemoryError, lambda: ft.touch(array)))
        array[:100 << 20] = 1
        ft.touch(array[:200 << 20])  # half of it is there
        """
    with group(limit=256 * MIB) as place:
        lines = quiet(start(program, preexec_fn=place.enter)).splitlines()
    assert [line for line in lines if "are available in this machine or its memory cgroup" not in line] == ["0"]
    assert len(lines) == 5
    assert "512 MiB of them are not resident" in lines[-1]


def test_receipts_of_pools_say_what_was_recycled_and_what_is_fresh() -> None:
    pool = ft.pool(decay=None)
    array = pool.zeros(8 * MIB, np.uint8)
    fresh = granted(array[5:])
    assert (fresh.nbytes, fresh.asked, fresh.why_not) == (8 * MIB, "", ())
    assert fresh.mapped >= 8 * MIB
    assert fresh.origin.startswith("fresh, on ")
    assert (fresh.huge == "thp") == ("on huge pages" in fresh.origin)
    del array
    again = granted(pool.empty(8 * MIB, np.uint8))
    assert again.origin.startswith("recycled, ")
    assert again.huge == fresh.huge
    pool.empty(20_000, np.uint8)
    array = pool.empty(20_000, np.uint8)
    small = granted(array)
    assert (small.origin, small.huge, small.granted) == (again.origin, None, "the pages of an earlier block")


def test_a_scratch_buffer_over_a_pool_over_placed_pages() -> None:
    buffer = ft.ScratchBuffer("64 KiB", ft.pool(ft.numa(0)))
    assert repr(eval(repr(buffer), vars(ft))) == repr(buffer)
    with ft.scratch(buffer) as s:
        assert not s.zeros(1000).any()
    receipt = granted(np.frombuffer(buffer.zeros(1 << 20), np.uint8))
    assert "numa='bind:0'" in receipt.asked  # large ones are the pool's


def test_nodes_by_their_number() -> None:
    assert repr(ft.numa(0)) == repr(ft.pages(numa="bind:0")) == repr(ft.pages(numa=0))
    with pytest.raises(TypeError, match=r"did you mean firsttouch.numa\(\)"):
        ft.zeros(3, allocator=ft.numa)  # type: ignore[call-overload]


def test_the_topology_is_the_kernels() -> None:
    found = ft.placement.topology()
    assert ft.placement.current_node() in {node.number for node in found}
    every = {processor for node in found for processor in node.processors}
    assert os.sched_getaffinity(0) <= every
    for node in found:
        assert len(node.distances) == len(found)
        assert 0 <= node.free <= node.memory


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program names x86_64's number")
def test_a_policy_from_outside_whose_nodes_are_relative_is_not_widened() -> None:
    program = """
    import ctypes
    named = (ctypes.c_ulong * 16)(1)
    assert not ctypes.CDLL(None).syscall(238, 2 | 1 << 14, named, 1024)  # set_mempolicy, MPOL_F_RELATIVE_NODES
    print(*ft.receipt(ft.pages(numa="local").zeros(100_000)).why_not)
    """
    assert run(program) == "numa: the memory policy inherited by the process does not allow it\n"

"""Steps that make much of what must not stay: address space, file descriptors."""

from __future__ import annotations

import os
import pickle
import resource
from random import Random

import firsttouch as ft
from tests.trust.world import World

PAGE = resource.getpagesize()


def address_space() -> int:
    """Return the bytes of address space that this process has."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[0]) * PAGE


def short_lived_pools(world: World, random: Random) -> None:
    """More pools at once than there may be slots: what they mapped goes with them."""
    grown = before = address_space()
    for _ in range(2):  # the first round may map what stays: tables, the threads' heaps
        before = address_space()
        pools = [ft.pool() for _ in range(30)]
        arrays = [pool.empty(nbytes, "u1") for pool in pools for nbytes in (random.randrange(20_000, 40_000), 4 << 20)]
        for array in arrays:
            array[:1] = 1
        pools.clear()
        arrays.clear()
        del array
        grown = address_space() - before
    assert grown < 128 << 20, f"30 short-lived pools leave {grown >> 20} MiB of address space mapped"


def sent_to_nobody(world: World, random: Random) -> None:
    """Shared arrays that are pickled, as for a hash, and dropped: files are left for others to open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, os.listdir("/proc/self/fd")), default=2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * used + 64, before[1]))
    try:
        for _ in range(2 * used + 64):
            pickle.dumps(ft.shared(1000, "u1"))
        with open("/dev/null", "rb"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

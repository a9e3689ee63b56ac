"""Steps that ask what is there, and that place it."""

from __future__ import annotations

import gc
import time
from random import Random

import numpy as np

import firsttouch as ft
from tests.trust.steps.arrays import make
from tests.trust.world import World


def look(world: World, random: Random) -> None:
    filled = world.any(random)
    if filled is None or not filled.array.size:
        return
    found = ft.inspect(filled.array)
    assert found.nbytes == filled.array.nbytes
    assert str(found)
    ft.get_allocator(filled.array)
    ft.inspection.pagemap(filled.array)
    assert found.is_backed is not None or world.tolerant  # move_pages may be denied, and the scan of pages fail
    ft.receipt(filled.array)


def place(world: World, random: Random) -> None:
    """Touch and migrate: what is in the array stays."""
    filled = world.any(random)
    if filled is None or not filled.array.size or not filled.array.flags.c_contiguous:
        return
    match random.randrange(3):
        case 0:
            ft.touch(filled.array, random.choice((None, 1, 2)))
        case 1:
            ft.migrate(filled.array, 0)
        case _:
            assert ft.placement.current_node() in [node.number for node in ft.placement.topology()]


def figures(world: World, random: Random) -> None:
    chosen = random.choice(world.allocators)
    found = ft.stats(chosen)
    assert found.recycled <= found.allocations
    assert found.in_use <= found.peak_in_use + (64 << 20) or not found.peak_in_use
    assert found.first_touched_small_bytes + found.first_touched_huge_bytes == found.first_touched_bytes


def told(world: World, random: Random) -> None:
    """Failures and descriptions: texts that anyone may print at any time."""
    assert str(ft.last_failure())
    chosen = random.choice(world.allocators)
    if isinstance(chosen, ft.Allocator):
        assert repr(chosen)


def trim(world: World, random: Random) -> None:
    ft.trim(random.choice(world.allocators) if random.random() < 0.5 else None)


def measured(world: World, random: Random) -> None:
    with ft.measure() as found:
        make(world, random)
        # Smaller ones are not counted, nor those of numpy_default(), in whose block a signal handler may run.
        ft.ones(100_000, "u1", allocator="pool()")
    assert str(found)
    assert found.arrays >= 1


def pause(world: World, random: Random) -> None:
    """Time passes: idle memory decays, threads end."""
    time.sleep(random.uniform(0, 0.15))


def collect(world: World, random: Random) -> None:
    """Cycles with arrays in them are collected, by finalizers that make arrays."""

    class Node:
        def __init__(self) -> None:
            self.itself = self
            self.array = ft.empty(world.size(random), "u1", allocator=world.allocator(random))

        def __del__(self) -> None:
            np.ones(30_000, "u1")

    for _ in range(random.randrange(1, 4)):
        Node()
    gc.collect()

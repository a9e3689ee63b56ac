"""Steps that ask several witnesses of the same arrays: what they tell agrees, also while threads run."""

from __future__ import annotations

import json
import mmap
import tempfile
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch import Allocator, _firsttouch
from firsttouch._internal.resolve import parse
from firsttouch.process import Stats
from tests.trust.world import World

COUNTED = (
    "pool()",
    "pool(decay=0)",
    "pool(pages())",
    "pool(numa('local'))",
    "limited(pool(), '2 GiB')",
)
"""Allocators that count all blocks of the sizes used here."""
LEAST = 64 << 10
"""Bytes of the smallest array: no smaller ones are counted, among them the scalars of assignments."""
TURNS = 60
"""Arrays that each thread makes."""
Arrays = list[np.ndarray[Any, Any]]
ONLY_RISE = ("allocations", "allocated_bytes", "recycled", "recycled_bytes", "peak_in_use", "purged_bytes", "failures")


def figures_agree(found: Stats, text: str) -> None:
    """Check the relations that the figures of an allocator have at any moment."""
    is_pool = text.startswith(("pool", "limited(pool"))
    assert found.in_use <= found.peak_in_use, f"{text}: {found}"
    assert found.recycled <= found.allocations, f"{text}: {found}"
    assert found.blocks <= found.allocations, f"{text}: {found}"
    assert (found.blocks == 0) <= (found.in_use == 0), f"{text}: {found}"
    assert found.in_use >= found.blocks * LEAST, f"{text}: {found}"
    assert found.in_use <= found.allocated_bytes, f"{text}: {found}"
    if is_pool:
        assert found.in_use <= found.active <= found.peak_active, f"{text}: {found}"
        assert found.active + found.idle <= found.peak_held, f"{text}: {found}"
        assert found.active + found.idle + found.retained == found.mapped, f"{text}: {found}"
    assert found.first_touched_small_bytes + found.first_touched_huge_bytes == found.first_touched_bytes


def array_agrees(array: np.ndarray[Any, Any]) -> None:
    """Check that what is told of an array from several sides is the same."""
    found, receipt = ft.inspect(array), ft.receipt(array)
    assert found.nbytes == array.nbytes
    assert found.allocator is not None
    assert repr(found.allocator) == repr(ft.get_allocator(array))
    assert found.receipt == receipt
    if receipt is not None:  # of a recycled block it tells what was requested first
        assert max(array.nbytes, receipt.nbytes) <= receipt.mapped, f"{found} {receipt}"
    whole = found.pages * mmap.PAGESIZE
    assert found.real is None or array.nbytes <= found.real + (found.swapped or 0) <= whole, f"{found}"
    if found.small is not None and found.huge is not None:
        assert found.small + found.huge == found.real
    assert found.nodes is None or sum(found.nodes.values()) == found.real
    states = ft.inspection.pagemap(array).states
    assert states.size == found.pages, f"{states} of {found}"


def work(random: Random, kept: Arrays) -> int:
    """Make and drop arrays, as a thread; return their bytes."""
    nbytes = 0
    for _ in range(TURNS):
        array = np.empty(random.randrange(LEAST, 400_000), "u1")
        array[:] = 1
        nbytes += array.nbytes
        kept.append(array)
        del array
        if len(kept) > 8:
            del kept[random.randrange(8)]
    return nbytes


def agree(world: World, random: Random) -> None:
    """Let threads make arrays, and compare what the allocator, measure() and a trace count of them."""
    if world.cramped or world.tolerant:
        return
    text, kept = random.choice(COUNTED), [Arrays() for _ in range(3)]
    chosen = parse(text)
    ft.install(chosen)
    with tempfile.NamedTemporaryFile() as file:
        _firsttouch.trace_begin()
        try:
            with ft.measure() as measured, ThreadPoolExecutor(len(kept)) as pool:
                workers = [pool.submit(work, Random(random.randrange(1 << 30)), each) for each in kept]
                before = ft.stats(chosen)
                while not all(worker.done() for worker in workers):
                    before = _watch(chosen, text, before, kept, measured)
        finally:
            ft.uninstall()
            _firsttouch.trace_end(file.name, [])
        nbytes = sum(worker.result() for worker in workers)
        _compare(chosen, nbytes, sum(kept, Arrays()), measured, json.load(file))


def _watch(chosen: Allocator, text: str, before: Stats, kept: list[Arrays], measured: ft.profiling.Measured) -> Stats:
    arrays = measured.arrays
    now = ft.stats(chosen)
    figures_agree(now, text)
    for name in ONLY_RISE:
        assert getattr(before, name) <= getattr(now, name), f"{text}: {name} falls: {before}, then {now}"
    # Each thread may be between the allocator and the profile, which is told afterwards.
    assert before.allocations - len(kept) <= arrays <= now.allocations, f"{arrays}: {before}, then {now}"
    for each in kept:
        for array in each[:1]:
            array_agrees(array)
    return now


def _compare(
    chosen: Allocator, nbytes: int, kept: Arrays, measured: ft.profiling.Measured, trace: dict[str, Any]
) -> None:
    made, held, found = 3 * TURNS, sum(array.nbytes for array in kept), ft.stats(chosen)
    expected = (made, nbytes, len(kept), held)
    assert (found.allocations, found.allocated_bytes, found.blocks, found.in_use) == expected, f"{chosen}: {found}"
    assert (measured.arrays, measured.allocated, measured.kept_arrays, measured.kept) == expected, f"{measured}"
    assert (trace["allocations"], trace["allocated_bytes"], trace["in_use_at_end"]) == (made, nbytes, held), trace
    assert held <= trace["peak_in_use"] <= nbytes, trace

"""Steps while the system refuses something: memory, address space, mappings, or any system call."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterator
from random import Random

import numpy as np

import firsttouch as ft
from firsttouch import _firsttouch
from tests.trust.world import World

CALLS = (
    "map",
    "unmap",
    "discard",
    "advise_huge",
    "spawn",
    "resident",
    "protect",
    "open_pages",
    "scan_pages",
    "read_pages",
)
_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_C.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_C.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
PAGE = resource.getpagesize()


@contextlib.contextmanager
def tolerated(world: World) -> Iterator[None]:
    """Let steps be refused. Allocators that are made meanwhile may refuse later, too: they go again."""
    before = world.tolerant, world.cramped
    world.tolerant = world.cramped = True
    allocators, world.installed = [*world.allocators], False
    try:
        yield
    finally:
        world.tolerant, world.cramped = before
        world.allocators[:] = allocators
        if world.installed:
            ft.uninstall()


def short_of_memory(world: World, random: Random) -> None:
    """Room for a few MiB more of address space: requests fail, and nothing is lost."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (used + (random.choice((4, 16, 64)) << 20), before[1]))
    taken = []
    try:
        for _ in range(30):
            with contextlib.suppress(MemoryError):
                taken.append(ft.empty(world.size(random), "u1", allocator=random.choice(world.allocators)))
            with contextlib.suppress(MemoryError):
                taken.append(ft.zeros(4 << 20, "u1"))
            with contextlib.suppress(MemoryError):
                taken.append(np.zeros(world.size(random), "u1"))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def mappings_taken(left: int) -> Iterator[None]:
    """Take all of the mappings that a process may have but so many; none on a machine that allows very many."""
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as text:
        limit = int(text.read())
    length = (limit + 2) * PAGE
    start = _C.mmap(None, length, 3, 0x4022, -1, 0) if limit < 200_000 else None  # private, anonymous, no reserve
    if start in (None, ctypes.c_size_t(-1).value):
        yield
        return
    with open("/proc/self/maps", "rb") as lines:
        free = limit - sum(1 for _ in lines) - left
    try:
        for number in range(1, free, 2):
            if _C.mprotect(start + number * PAGE, PAGE, 1):
                break
        yield
    finally:
        _C.munmap(start, length)


def some(world: World, random: Random, most: int = 8) -> None:
    """Run some steps while something is refused."""
    with tolerated(world):
        world.some(random, random.randrange(2, most))


def failing_calls(world: World, random: Random) -> None:
    """The n-th system call of some kinds fails, or all from there on."""
    names = random.sample(CALLS, random.randrange(1, 5))
    _firsttouch.fail_calls(names, random.randrange(20), random.choice((1, 1, 2, 1 << 40)))
    try:
        some(world, random)
    finally:
        _firsttouch.fail_calls([], 0, 0)


def failing_allocation(world: World, random: Random) -> None:
    """The n-th allocation of the native module for itself fails."""
    _firsttouch.fail_allocation(random.randrange(1, 60), random.random() < 0.1)
    try:
        some(world, random)
    finally:
        _firsttouch.fail_allocation(0, False)


def few_mappings(world: World, random: Random) -> None:
    """All but a few of the mappings that a process may have are taken."""
    with mappings_taken(random.randrange(1, 40)):
        some(world, random, 300)  # taking them takes as long


def few_files(world: World, random: Random) -> None:
    """Almost no file number is left."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, os.listdir("/proc/self/fd")), default=2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + random.randrange(1, 6), before[1]))
    try:
        some(world, random)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

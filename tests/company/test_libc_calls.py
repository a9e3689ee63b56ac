"""Mapping, unmapping and discarding go through libc's symbols, which MPI and profilers hook."""

import pytest

from tests.preloading import shim
from tests.programs import run

#: Counts the calls that touch the addresses where segments lie, and the bytes that are mapped there now.
COUNTS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <sys/mman.h>

#define LOW (1ul << 44)
#define HIGH (6ul << 44)
long calls_mmap, calls_munmap, calls_dontneed, calls_hugepage;

static int ours(const void *at) { return (uintptr_t)at >= LOW && (uintptr_t)at < HIGH; }
#define COUNT(n) __atomic_add_fetch(&(n), 1, __ATOMIC_SEQ_CST)

void *mmap(void *at, size_t size, int prot, int flags, int file, off_t offset) {
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next) next = dlsym(RTLD_NEXT, "mmap");
    void *got = next(at, size, prot, flags, file, offset);
    if (got != MAP_FAILED && ours(got)) COUNT(calls_mmap);
    return got;
}

int munmap(void *at, size_t size) {
    static int (*next)(void *, size_t);
    if (!next) next = dlsym(RTLD_NEXT, "munmap");
    if (ours(at) || size == 3 << 20) COUNT(calls_munmap); // a block of pages() lies anywhere
    return next(at, size);
}

int madvise(void *at, size_t size, int advice) {
    static int (*next)(void *, size_t, int);
    if (!next) next = dlsym(RTLD_NEXT, "madvise");
    if (ours(at) && advice == MADV_DONTNEED) COUNT(calls_dontneed);
    if (ours(at) && advice == MADV_HUGEPAGE) COUNT(calls_hugepage);
    return next(at, size, advice);
}
"""

PROLOGUE = """
import ctypes, os
import numpy as np
import firsttouch as ft
from tests import probe

shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
names = ("mmap", "munmap", "dontneed", "hugepage")
counters = [ctypes.c_long.in_dll(shim, "calls_" + name) for name in names]

def calls():
    return dict(zip(names, (counter.value for counter in counters)))

def since(before):
    return {name: now - before[name] for name, now in calls().items()}
"""


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"LD_PRELOAD": str(shim(COUNTS, tmp_path_factory.mktemp("shim") / "counts.so"))}


def test_calls_are_seen(preload: dict[str, str]) -> None:
    run(
        """
        ft.install(ft.pool(decay=None))
        before = calls()
        small = [np.ones(100_000 + turn * 4096 * (turn % 5), np.uint8) for turn in range(50)]
        large = np.ones(30 << 20, np.uint8)
        found = since(before)
        assert found["mmap"] > 0 and found["hugepage"] > 0 and found["munmap"] == found["dontneed"] == 0, found
        del large
        ft.trim(ft.get_allocator())
        assert since(before)["munmap"] > 0, since(before)
        before = calls()
        del small[::2]
        ft.trim(ft.get_allocator())
        assert since(before)["dontneed"] > 0, since(before)

        ft.install(ft.pages())
        array = np.ones(3 << 20, np.uint8)
        before = calls()
        del array
        assert since(before)["munmap"] == 1, since(before)
        """,
        prologue=PROLOGUE,
        env=preload,
    )


def test_a_large_pool_needs_few_mappings() -> None:
    """The kernel bounds their number (vm.max_map_count); ours grow by need, in pieces of megabytes.

    Where the pool looks whether blocks are filled, base pages and huge ones may take turns.
    """
    run(
        """
        from pathlib import Path
        def mappings():
            return len(Path("/proc/self/maps").read_text().splitlines())
        ft.install()
        before = mappings()
        arrays = [np.ones(33_000 + turn * 997 % 90_000, np.uint8) for turn in range(10_000)]
        assert mappings() - before < 100, mappings() - before
        del arrays[::3]
        ft.trim()
        assert mappings() - before < 1000, mappings() - before
        """
    )

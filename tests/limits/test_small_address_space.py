"""Systems on which memory cannot be mapped at chosen addresses (a small address space, an old kernel)."""

from pathlib import Path

import pytest

from tests import preloading
from tests.trust.campaign import run

#: Refuses mappings at chosen addresses above what the program has itself, as a kernel with 39 bits of address would.
REFUSES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void *mmap(void *at, size_t size, int prot, int flags, int file, off_t offset) {
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next) next = dlsym(RTLD_NEXT, "mmap");
    uintptr_t address = (uintptr_t)at;
    if (flags & MAP_FIXED_NOREPLACE && address >= (1ul << 39) && address < (3ul << 45)) {
        const char *how = getenv("REFUSE");
        if (how && *how == 'h') /* a kernel before 4.17: only a hint */
            return next(0, size, prot, flags & ~MAP_FIXED_NOREPLACE, file, offset);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return next(at, size, prot, flags, file, offset);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloading.shim(REFUSES, tmp_path_factory.mktemp("shim") / "refuses.so")


@pytest.mark.parametrize("way", ["no such address", "hint alone"])
def test_random_programs(way: str, shim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    monkeypatch.setenv("REFUSE", way[0])
    assert run(4, 200).failure is None

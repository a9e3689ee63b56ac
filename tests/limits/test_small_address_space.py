"""Systems on which memory cannot be mapped at chosen addresses (a small address space, an old kernel)."""

from pathlib import Path

import pytest

from tests.preloading import compiled
from tests.programs import ask, run

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

static void *refused(int error) { errno = error; return MAP_FAILED; }

void *mmap(void *at, size_t size, int prot, int flags, int file, off_t offset) {
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next) next = dlsym(RTLD_NEXT, "mmap");
    uintptr_t address = (uintptr_t)at;
    if (flags & MAP_FIXED_NOREPLACE && address >= (1ul << 39) && address < (3ul << 45)) {
        const char *how = getenv("REFUSE");
        if (how && *how == 'h') /* a kernel before 4.17: only a hint */
            return next(0, size, prot, flags & ~MAP_FIXED_NOREPLACE, file, offset);
        return refused(how && *how == 'e' ? EEXIST : ENOMEM);
    }
    return next(at, size, prot, flags, file, offset);
}
"""

WAYS = {"no such address": "n", "taken": "e", "only a hint": "h"}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(REFUSES, tmp_path_factory.mktemp("shim") / "refuses.so")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_arrays_of_all_sizes_work(way: str, shim: Path) -> None:
    highest, stats = ask(
        """
        import json
        pool = ft.pool(decay=0.2)
        ft.install(pool, arrays_only=True)
        kept, highest = [], 0
        for turn in range(120):
            size = (40_000, 300_000, 1 << 20, 3 << 20, 5 << 20, 17 << 20)[turn % 6] + turn * 4099
            array = np.zeros(size, np.uint8) if turn % 5 == 0 else np.empty(size, np.uint8)
            assert turn % 5 or not array.any()
            highest = max(highest, abs((array.__array_interface__["data"][0] >> 40) - 0x7f))
            probe.fill(array, turn)
            kept.append((array, turn))
            if len(kept) > 8:
                old, seed = kept.pop(turn * 5 % 8)
                assert probe.intact(old, seed)
        for array, seed in kept:
            array.resize(array.size * 2, refcheck=False)
            assert probe.intact(array, seed, array.size // 2)
        del array, old
        kept.clear()
        assert ft.stats(pool).blocks == 0
        assert probe.wait_until(lambda: ft.stats(pool).idle == 0), ft.stats(pool)
        print(json.dumps([highest, ft.stats(pool)._asdict()]))
        """,
        env={"LD_PRELOAD": str(shim), "REFUSE": way},
    )
    assert highest <= 1, "every array lies where the kernel put it"
    assert stats["allocations"] >= 120
    assert stats["recycled"] > 0


def test_other_peoples_memory_forks_and_a_limit_on_top(shim: Path) -> None:
    said = run(
        """
        import mmap, os, resource
        ft.install()
        ours = [np.ones(1 << 20, np.uint8) for _ in range(20)]
        others = [mmap.mmap(-1, 1 << 20) for _ in range(40)]
        ft.uninstall()
        numpys = [np.ones(size, np.uint8) for size in (100, 50_000, 1 << 20, 50 << 20) for _ in range(6)]
        assert {ft.get_allocator(array) for array in numpys} == {ft.numpy_default()}
        ft.install()
        del numpys[::2], ours[::3]
        numpys[-1].resize(90 << 20, refcheck=False)  # a small one would move to the pool
        assert ft.get_allocator(numpys[-1]) == ft.numpy_default()
        assert all(array.all() for array in ours)
        del numpys

        for turn in range(10):
            with ft.use(ft.pool()):
                arrays = [np.ones(3 << 20, np.uint8) for _ in range(4)]
            child = os.fork()
            if not child:
                more = np.zeros(9 << 20, np.uint8)
                os._exit(7 if all(array.all() for array in arrays) and not more.any() else 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            del arrays

        # There a segment is only as large as asked where more cannot be had; two of them have room.
        room = probe.status("VmSize") + (120 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        for turn in range(10):
            array = np.ones(50 << 20, np.uint8)
            del array
            array = np.ones(5 << 20, np.uint8)
            del array
        assert ft.last_failure() is None, ft.last_failure()
        """,
        env={"LD_PRELOAD": str(shim), "REFUSE": "n"},
    )
    assert said == ""

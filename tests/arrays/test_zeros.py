"""Zeros are zero, fresh or recycled, at every size; and sparse arrays stay sparse."""

import mmap

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB, MIB
from tests.programs import ask

pytestmark = pytest.mark.quick

SMALL = ft.stats().small_limit
SIZES = [
    SMALL,
    33 * KIB,
    64 * KIB + 1,
    200 * KIB,
    300 * KIB + 7,
    256 * KIB,
    MIB - 1,
    MIB,
    2 * MIB,
    3 * MIB + 5,
    4 * MIB,
    4 * MIB + 1,
]
SIZES += [7 * MIB, 16 * MIB, 20 * MIB, 32 * MIB - 1, 32 * MIB, 32 * MIB + 4097, 50 * MIB]

POOLS = ["ft.pool()", "ft.pool(decay=0)", "ft.pool(ft.pages())", "ft.pool(max_idle=0)", "ft.pages()", "ft.pages('thp')"]


@pytest.mark.parametrize("expression", POOLS)
def test_after_other_sizes_were_written_and_freed(expression: str) -> None:
    """Parts of larger blocks, joined smaller ones, partly purged ones."""
    with ft.use(eval(expression)) as allocator:
        kept = []
        for turn in range(60):
            written = [np.full(SIZES[at % len(SIZES)], 0xFF, np.uint8) for at in range(turn, turn + 4)]
            kept.append(written.pop(turn % 4))
            written.clear()
            if turn % 7 == 3:
                ft.trim(allocator)
            if len(kept) > 3:
                kept.pop(turn % 3)
            size = SIZES[turn * 5 % len(SIZES)]
            zeros = np.zeros(size, np.uint8)
            assert not zeros.any(), (turn, size)
            zeros[:] = 0xFF


@pytest.mark.parametrize("expression", POOLS)
def test_zeros_only_partly_written_before(expression: str) -> None:
    """What is not there need not be cleared; what is, on the last page too, must be."""
    with ft.use(eval(expression)) as allocator:
        for size in SIZES:
            for step in (MIB, 4096):
                ft.trim(allocator)
                sparse = np.zeros(size, np.uint8)
                sparse[step // 2 :: step] = 1
                sparse[[0, -1]] = 1
                del sparse
                assert not np.zeros(size, np.uint8).any(), (size, step)


RESIDENT = """
import json, sys
if sys.argv[1:] == ["pooled"]:
    ft.install()
def resident(count, size):
    before = probe.rss()
    arrays = [np.zeros(size, np.uint8) for _ in range(count)]
    for array in arrays:
        array[:: 1 << 20] = 1
    now = probe.rss() - before
    assert all(int(array[:: 1 << 20].sum()) == -(-size // (1 << 20)) for array in arrays)
    return now
print(json.dumps([resident(*case) for case in %r]))
"""


def test_sparse_arrays_stay_sparse() -> None:
    cases = [(1000, MIB), (300, 3 * MIB), (400, 300 * KIB)]
    # Older NumPys ask for no huge pages behind large zeros; we do.
    if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
        cases += [(2, 200 * MIB), (1, 1024 * MIB)]
    program = RESIDENT % (cases,)
    pooled = ask("import sys\nsys.argv[1:] = ['pooled']\n" + program)
    plain = ask("import sys\nsys.argv[1:] = []\n" + program)
    for case, ours, theirs in zip(cases, pooled, plain, strict=True):
        assert ours <= theirs * 1.15 + 8 * MIB, (case, ours, theirs)


def test_a_recycled_sparse_array_stays_sparse() -> None:
    """As many resident bytes again, and again."""
    found = ask("""
        import json
        ft.install(ft.pool(decay=None))
        found = []
        for size in (1 << 20, 3 << 20):
            before = probe.rss()
            for turn in range(3):
                arrays = [np.zeros(size, np.uint8) for _ in range(100)]
                for array in arrays:
                    array[::1 << 20] = 1
                del arrays, array
            found.append((probe.rss() - before) // 100)
        print(json.dumps(found))
    """)
    assert found[0] < 4 * mmap.PAGESIZE
    assert found[1] < 12 * mmap.PAGESIZE

"""Zeros over what was written in part are zero, and sparse arrays stay sparse; law 2 in tests/contract has the rest."""

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


@pytest.mark.linux("/proc")
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

"""Which cells the table has: rows are ways, columns are kinds of pages or settings of the C library."""

from __future__ import annotations

from typing import Any

from firsttouch.tools.bench.shuffled import Cell
from firsttouch.tools.measuring.contenders import NUMPY, TUNED, Contender
from firsttouch.tools.measuring.rounds import Call

#: Table, row, column.
Key = tuple[str, str, str]
#: What `pages(huge=...)` is asked for.
KINDS: dict[str, Any] = {"4 KiB": False, "THP": "thp", "2 MiB from the pool": ["2M"]}
#: The environment of each column. Tunables of glibc 2.35: advise huge pages, or take them from the kernel's pool.
COLUMNS: dict[str, dict[str, str]] = {
    "glibc": {},
    "never mapped or trimmed": TUNED,
    "hugetlb=1 (THP)": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "hugetlb=2 (pool)": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2"},
    "NumPy's own": {},
}
#: Row by what is allocated and what is done to it.
WAYS = {
    "calloc, touched": ("allocated", "calloc", "touched"),
    "malloc, touched": ("allocated", "malloc", "touched"),
    "malloc, byte by byte": ("allocated", "malloc", "byte by byte"),
    "malloc, word by word": ("allocated", "malloc", "word by word"),
    "malloc, memset": ("allocated", "malloc", "memset"),
    "memset, memory that exists": ("existing", "malloc", "memset"),
    "memcpy, memory that exists": ("existing", "malloc", "memcpy"),
}
_OF_NUMPY = {"calloc": "np.zeros", "malloc": "np.empty"}
_TASK = "firsttouch.tools.bench.tasks.touch"


def every(size: int, processors: int, quick: bool) -> dict[Key, Cell]:
    """All cells of a size; a quick run leaves the settings out."""
    cells: dict[Key, Cell] = {}
    for kind, huge in KINDS.items():
        for row, (populate, threads, places) in rows(processors).items():
            arguments = {"nbytes": size, "huge": huge, "populate": populate, "threads": threads, "processors": places}
            cells["pages", row, kind] = Cell(NUMPY, Call(_TASK, "placed", arguments), size)
    for column, environment in COLUMNS.items():
        if quick and environment:
            continue
        contender = Contender(column, environment)
        for row, (function, maker, way) in WAYS.items():
            made = _OF_NUMPY[maker] if column == "NumPy's own" else maker
            call = Call(_TASK, function, {"nbytes": size, "maker": made, "way": way})
            cells["settings", row, column] = Cell(contender, call, 2 * size)
    return cells


def rows(processors: int) -> dict[str, tuple[int, int, int]]:
    """Ways to make placed pages real: threads that populate, threads that touch, processors to run on."""
    counts = sorted({1, *(2**power for power in range(1, 10) if 2**power < processors), processors})
    made: dict[str, tuple[int, int, int]] = {}
    for word in ("touched", "populated"):
        for threads in counts:
            label = f"{word}, {threads} thread{'s' if threads > 1 else ''}"
            made[label] = (threads if word == "populated" else 0, threads, processors)
        if processors > 1:
            label = f"{word}, {processors} threads on one processor"
            made[label] = (processors if word == "populated" else 0, processors, 1)
    return made

"""How many bytes a second become real: by page size, by way, by threads, by the C library's settings.

Daniel Lemire measured it in C++ in January 2020 (github.com/lemire/Code-used-on-Daniel-Lemire-s-blog, 2020/01/14, "new
char[s] + touch"), with 512 MB: allocating and touching a byte of each page made 3.8 GB/s real with pages of 4 KiB and
19.6 GB/s with transparent huge pages; `new char[s]()`, which writes byte by byte, 1.6 and 2.4 GB/s; memset of memory
that exists ran at 30 GB/s and memcpy at 12.5. (His GB are 2**30 bytes, and memcpy counts what it copies once; so do we,
but for GB of 10**9.)

Each cell runs in a fresh process, in an order that is shuffled anew in every round; what that order did is reported.
The rows of new memory count the allocation. `malloc` and `calloc` are glibc's; its settings come by environment
variables, which say what `mallopt` would.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from firsttouch.tools.bench import shuffled, sizes
from firsttouch.tools.bench.pictures import touch as pictures
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.bench.touching import sentences
from firsttouch.tools.bench.touching.cells import COLUMNS, KINDS, WAYS, Key, every, rows
from firsttouch.tools.bench.words import rate
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.sizes import MIB, name

ARRAYS = 2  # memcpy has two
FULL, QUICK = 512 * MIB, 128 * MIB


def run(settings: Settings) -> Section:
    """Every cell once a round."""
    section = Section(
        "touch",
        "Making memory real",
        "how many bytes a second can be written for the first time, by page size, way, threads and settings of the C "
        "library, against memory that exists? Medians over fresh processes.",
    )
    wanted, section.notes = sizes.chosen(settings, (FULL,), (QUICK,), ARRAYS)
    for at, size in enumerate(wanted):
        cells = every(size, processors(), settings.quick)
        progress = partial(part, settings, at, len(wanted))
        replies = shuffled.run(cells, 2 if settings.quick else 3, progress)
        found = {key: middle(values) for key, values in shuffled.by_key(replies).items()}
        section.raw[name(size)] = {str(key): value for key, value in shuffled.by_key(replies).items()}
        section.tables += [by_pages(size, found), by_settings(size, found)]
        section.notes += [*sentences.answers(size, found), *sentences.doubts(found), sentences.order(replies)]
        title = f"Bytes a second, {name(size)} of memory"
        section.pictures.append(Picture(f"{size >> 20}", title, partial(pictures.rates, found=found)))
    return section


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def part(settings: Settings, at: int, parts: int, done: float) -> None:
    """Progress of one size among several."""
    settings.progress((at + done) / parts)


def middle(values: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure; reasons are the last ones."""
    figures = {key: float(np.median([one[key] for one in values])) for key in values[0] if key != "why not"}
    return {**figures, "why not": values[-1]["why not"]}


def by_pages(size: int, found: dict[Key, dict[str, Any]]) -> Table:
    """Ways and threads by kinds of pages."""
    table = Table(f"**{name(size)} of fresh pages**", ["way", *KINDS])
    for row in rows(processors()):
        table.rows.append([row, *(sentences.shown(found["pages", row, kind], kind) for kind in KINDS)])
    return table


def by_settings(size: int, found: dict[Key, dict[str, Any]]) -> Table:
    """Ways by settings of the C library, and NumPy's own."""
    columns = [column for column in COLUMNS if any(key[2] == column for key in found)]
    table = Table(f"**{name(size)} of the C library's memory, one thread**", ["way", *columns])
    for row in WAYS:
        table.rows.append([row, *(rate(found["settings", row, column]["rate"]) for column in columns)])
    return table

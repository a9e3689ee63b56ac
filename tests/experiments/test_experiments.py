"""Each experiment of `firsttouch bench` measures what it says, and concludes what its figures say."""

import importlib
import os
import re
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.tools.bench import NAMES, numa, scratch, temporaries, triad, zeros
from firsttouch.tools.bench.common import Section, Settings

KIB, MIB, PAGE = 1 << 10, 1 << 20, 4096
needs_states = pytest.mark.skipif(ft.inspect(np.zeros(MIB)).zero_page is None, reason="no source tells the zero page")


# --- whole experiments, small

#: The first cells of every table, and what some note says.
EXPECTED: dict[str, tuple[list[list[str]], str]] = {
    "zeros": ([["1 MiB"] * 5], "created, summed and written"),
    "touch": ([["1 MiB"] * 12], r"Best rates .*: [^,]* on 4 KiB pages \([^)]*\)\. A"),  # 1 MiB has no other pages
    "triad": ([["1 MiB"] * 3], "zero-page trap"),
    "temporaries": ([list(temporaries.EXPRESSIONS)], "over all expressions"),
    "scratch": ([["NumPy"]], "passed-in buffer"),
    "numa": ([[f"{target} from {source}" for target, source in numa.COPIES]], "not distance"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "temporaries" else [pytest.mark.slow]) for name in NAMES]
)
def test_a_small_run_fills_every_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _who: {0, 1})
    monkeypatch.setattr(scratch, "LANGUAGES", {"NumPy": scratch.in_numpy})
    section: Section = importlib.import_module(f"firsttouch.tools.bench.{name}").run(Settings(quick=True, sizes=(MIB,)))
    expected, said = EXPECTED[name]
    assert [[row[0] for row in table.rows] for table in section.tables][: len(expected)] == expected
    assert any(re.search(said, note) for note in section.notes)
    assert all(len(row) == len(table.columns) for table in section.tables for row in table.rows)
    assert section.raw


# --- zeros


@needs_states
def test_every_life_is_on_memory_that_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    pool = ft.pool()

    def make(items: int) -> Any:
        array = pool.zeros(items)
        seen.append((ft.inspect(array).absent or 0) >= items * 8)
        return array

    monkeypatch.setitem(zeros.MAKERS, "np.zeros", make)
    monkeypatch.setattr(zeros, "MOST", 4)
    zeros.measure("np.zeros", MIB)
    assert seen == [True] * 4


# --- triad


@needs_states
def test_a_triad_that_was_never_written_reads_the_zero_page_alone_and_another_memory() -> None:
    assert triad.measure(MIB, "pages()", seconds=0.0)["zero page"] == 1

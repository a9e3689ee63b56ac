"""``--firsttouch=tracked``: which tests hold the most memory, and which arrays outlive their test."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import firsttouch
from _firsttouch_start import units
from firsttouch import Allocator, _firsttouch
from firsttouch._internal.resolve import parse
from firsttouch.pytest_plugin.child import run
from firsttouch.pytest_plugin.crash import reports_of
from firsttouch.pytest_plugin.installed import Forking


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table whose first two columns are right-aligned."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column < 2 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


#: Rows of each table.
_MOST = 10
_OUTLIVED = 20


class Tracked(Forking):
    """Runs each test in a child with its own allocator, so that only the test's arrays and fixtures are counted."""

    def __init__(self, allocators: list[Allocator]) -> None:
        super().__init__(allocators)
        self._own = allocators[0]
        self._held: list[tuple[int, int, str]] = []
        self._outlived: Counter[tuple[str, str]] = Counter()
        self._bytes: Counter[tuple[str, str]] = Counter()

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Return the reports of a test; the last one carries the counts."""
        ended = run(item, self._begin, self._counted)
        reports = reports_of(item, ended)
        if ended.whole:
            vars(reports[-1])["firsttouch"] = ended.found
        return reports

    def _begin(self) -> None:
        self._own = parse(repr(self.allocators[0]))
        firsttouch.install(self._own)

    def _counted(self) -> dict[str, Any]:
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)  # a failure's frames, kept for debuggers, hold its arrays
        gc.collect()
        tally = _firsttouch.tally(self._own)
        living = [(asked, _place(file, line)) for _, asked, file, line in _firsttouch.living(self._own)]
        return {"peak": tally["peak_bytes"], "arrays": tally["allocations"], "living": living}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the counts of a test; under xdist the controller receives those of all workers."""
        found = getattr(report, "firsttouch", None)
        if found is None:
            return
        self._held.append((found["peak"], found["arrays"], report.nodeid))
        for asked, place in found["living"]:
            self._outlived[report.nodeid, place] += 1
            self._bytes[report.nodeid, place] += asked

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the tables."""
        if not self._held:
            return
        terminalreporter.section("firsttouch: tests that held most")
        most = sorted(self._held, key=lambda row: (-row[0], row[2]))[:_MOST]
        rows = [(units.size(peak), str(arrays), test) for peak, arrays, test in most]
        terminalreporter.write_line(table(("at once", "arrays", "test"), rows))
        terminalreporter.section("firsttouch: arrays that outlived their test")
        if not self._outlived:
            terminalreporter.write_line("none")
            return
        kept = sorted(self._bytes.items(), key=lambda entry: (-entry[1], entry[0]))
        lines = [(units.size(held), str(self._outlived[key]), key[1], key[0]) for key, held in kept[:_OUTLIVED]]
        terminalreporter.write_line(table(("held", "arrays", "requested at", "test"), lines))
        if (more := len(kept) - _OUTLIVED) > 0:
            terminalreporter.write_line(f"and {units.count(more, 'more line')}")


def _place(file: str | None, line: int) -> str:
    """Format a source line, relative to the current directory if it is below it."""
    if file is None:
        return "(no Python line)"
    near = os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file
    return f"{near}:{line}"

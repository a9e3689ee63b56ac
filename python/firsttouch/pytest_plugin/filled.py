"""``--firsttouch=filled``: whose result depends on memory that nobody wrote fails, by name."""

from __future__ import annotations

import re

import pytest

import firsttouch
from firsttouch.pytest_plugin.child import Run, run
from firsttouch.pytest_plugin.crash import reports_of, what_happened
from firsttouch.pytest_plugin.installed import Forking

_PATTERN = re.compile(r"on_allocate=(\d+)")
_MEANING = {0xFF: "NaN in floats, -1 in integers", 0x7F: "huge numbers, positive and finite", 0: "zeros"}


class Filled(Forking):
    """Runs each test once with each pattern; where one fails, plainly too, to tell this mistake from all others."""

    how = "each test in a process of its own, once with each pattern"

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """What is to be reported of a test."""
        first = None
        for allocator in self.allocators:
            ended = run(item, lambda chosen=allocator: firsttouch.install(chosen))  # type: ignore[misc]
            if ended.failed:
                return self._judged(item, ended, allocator)
            first = first or ended
        assert first is not None
        return reports_of(item, first)

    def _judged(self, item: pytest.Item, ended: Run, allocator: firsttouch.Allocator) -> list[pytest.TestReport]:
        plain = run(item, firsttouch.uninstall)
        if plain.failed:
            return reports_of(item, plain)
        again = run(item, lambda: firsttouch.install(allocator))
        reports = reports_of(item, ended)
        if not again.failed:
            return reports  # now this, now that: no matter what memory holds
        for report in reports:
            if report.failed:
                what = what_happened(ended) if not ended.whole else report.longreprtext
                report.longrepr = f"{_sentence(allocator)}\n\n{what}"
        return reports


def _sentence(allocator: firsttouch.Allocator) -> str:
    """What is wrong with a test that passes only plainly."""
    found = _PATTERN.search(repr(allocator))
    pattern = int(found[1]) if found else 0
    meaning = f" ({_MEANING[pattern]})" if pattern in _MEANING else ""
    return (
        "depends on memory that was never written: it passes plainly, and fails where new memory is filled with "
        f"{pattern:#04x}{meaning}"
    )

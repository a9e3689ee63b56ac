"""``--firsttouch=filled``: tests whose results depend on uninitialized memory fail, by name."""

from __future__ import annotations

import re

import pytest

import firsttouch
from firsttouch import Allocator, _firsttouch
from firsttouch.pytest_plugin.child import Run, run
from firsttouch.pytest_plugin.crash import reports_of
from firsttouch.pytest_plugin.installed import Forking

_PATTERN = re.compile(r"on_allocate=(\d+)")
_MEANING = {0xFF: "NaN in floats, -1 in integers", 0x7F: "huge numbers, positive and finite", 0: "zeros"}


class Filled(Forking):
    """Runs each test once with each pattern; if one fails, once more without any, and once more with it."""

    how = "each test in a process of its own, once with each pattern"

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Return the reports of a test."""
        first = None
        for allocator in self.allocators:
            ended = self._run(item, allocator)
            if ended.failed:
                return self._judged(item, ended, allocator)
            first = first or ended
        assert first is not None
        return reports_of(item, first)

    def _run(self, item: pytest.Item, allocator: Allocator) -> Run:
        return run(item, lambda: firsttouch.install(allocator))

    def _judged(self, item: pytest.Item, ended: Run, allocator: Allocator) -> list[pytest.TestReport]:
        stands_on = _firsttouch.upstream(allocator)
        assert stands_on is not None
        unfilled = self._run(item, _firsttouch.make("filled", stands_on, on_allocate=None))  # otherwise the same
        if unfilled.failed:
            return reports_of(item, unfilled)
        again = self._run(item, allocator)
        reports = reports_of(item, ended)
        if not again.failed:
            return reports  # it also fails at random, whatever memory contains
        for report in reports:
            if report.failed:
                report.longrepr = f"{_sentence(allocator)}\n\n{report.longreprtext}"
        return reports


def _sentence(allocator: Allocator) -> str:
    """Return the message for a test that passes only with unfilled memory."""
    found = _PATTERN.search(repr(allocator))
    pattern = int(found[1]) if found else 0
    meaning = f" ({_MEANING[pattern]})" if pattern in _MEANING else ""
    return (
        "depends on memory that was never written: it passes otherwise, and fails where new memory is filled with "
        f"{pattern:#04x}{meaning}"
    )

"""The modes of ``pytest --firsttouch``, which ``_firsttouch_start.pytest_entry`` starts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from typing import Any

import pytest

import firsttouch
from firsttouch import Allocator, _firsttouch
from firsttouch._internal.resolve import parse
from firsttouch.pytest_plugin.child import Run, reports_of, run


class Installed:
    """Runs tests as usual; the allocator serves until the end, imports of test modules included."""

    how = "installed for the whole run"

    def __init__(self, allocators: list[Allocator]) -> None:
        self.allocators = allocators
        firsttouch.install(allocators[0])

    def pytest_unconfigure(self) -> None:
        """Uninstall the allocator."""
        firsttouch.uninstall()

    def pytest_report_header(self) -> str:
        """Return the allocators and the mode."""
        return f"firsttouch: {' and '.join(map(repr, self.allocators))}, {self.how}"


class Forking(Installed):
    """Runs each test in a forked process.

    It replaces pytest's protocol of a test, so plugins that replace it too, to rerun tests, are not called.
    """

    how = "each test in a process of its own"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """Run one test with the setup and teardown of its fixtures of all scopes."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.reports(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Return the reports of a test."""
        raise NotImplementedError


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
        unfilled = self._run(item, firsttouch.filled(stands_on, on_allocate=None))  # otherwise the same
        if unfilled.failed:
            return reports_of(item, unfilled)
        again = self._run(item, allocator)
        reports = reports_of(item, ended)
        if not again.failed:
            return reports  # it also fails at random, whatever memory contains
        for report in reports:
            if report.failed:
                report.longrepr = f"{_depends(allocator)}\n\n{report.longreprtext}"
        return reports


def _depends(allocator: Allocator) -> str:
    """Return the message for a test that passes only with unfilled memory."""
    found = _PATTERN.search(repr(allocator))
    pattern = int(found[1]) if found else 0xFF
    meaning = f" ({_MEANING[pattern]})" if pattern in _MEANING else ""
    return (
        "depends on memory that was never written: it passes otherwise, and fails where new memory is filled with "
        f"{pattern:#04x}{meaning}"
    )


class Guarded(Forking):
    """Runs each test in a child, so that a crash affects only that test; the canaries are checked after each phase."""

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Return the reports of a test."""
        return reports_of(item, run(item, self._found))  # overruns found before, at import, are not this test's fault

    @staticmethod
    def _watched(when: str) -> Any:
        """Return the hook that reports out-of-bounds writes of one phase."""

        @pytest.hookimpl(wrapper=True)
        def watched(self: Guarded, item: pytest.Item) -> Generator[None, object, object]:
            try:
                result = yield
            except BaseException:
                if text := self._found():
                    item.add_report_section(when, "by firsttouch", text)
                raise
            if text := self._found():
                pytest.fail(text, pytrace=False)
            return result

        return watched

    pytest_runtest_setup = _watched("setup")
    pytest_runtest_call = _watched("call")
    pytest_runtest_teardown = _watched("teardown")

    def _found(self) -> str:
        """Describe the overruns found since the last call."""
        return "\n".join(_firsttouch.overruns(self.allocators[0]))


#: Expressions of the bare words. Freed memory that is kept detects use after free; two fill patterns expose more than
#: one.
WORDS = {
    "guarded": ("guarded(keep='64 MiB')",),
    "filled": ("filled(on_allocate=255)", "filled(on_allocate=127)"),
}
_MODES = {"guarded": Guarded, "filled": Filled}


def begin(config: pytest.Config, text: str) -> None:
    """Register the mode for this run; raise a usage error if the argument or the platform does not allow it."""
    if int(pytest.__version__.split(".")[0]) < 8:
        raise pytest.UsageError(f"--firsttouch needs pytest 8 or newer; this is {pytest.__version__}")
    text = text.strip()
    expressions = WORDS.get(text, (text,))
    mode = _MODES.get(text.partition("(")[0].strip(), Installed)
    if mode is not Installed and not hasattr(os, "fork"):
        raise pytest.UsageError(
            f"--firsttouch={text}: each test would run in a forked process, and {sys.platform} has none"
        )
    config.pluginmanager.register(mode([_made(each, text) for each in expressions]), "firsttouch-mode")


def _made(expression: str, given: str) -> Allocator:
    try:
        allocator = parse(expression)
        _firsttouch.install(allocator)  # only this shows whether it can serve the whole process
        _firsttouch.uninstall()
    except Exception as error:
        ways = ", ".join(WORDS)
        raise pytest.UsageError(
            f"--firsttouch={given}: {error}\nThere is {ways}, or an allocator's expression like "
            "'guarded(side=\"before\")', 'filled(on_allocate=0)' or 'pool()'."
        ) from error
    return allocator

"""Modes that install one allocator for the whole test run, and the base of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import firsttouch

if TYPE_CHECKING:
    from firsttouch import Allocator


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

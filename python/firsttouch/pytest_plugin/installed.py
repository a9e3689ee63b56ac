"""An allocator that is installed for the whole run, and what all ways have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import firsttouch

if TYPE_CHECKING:
    from firsttouch import Allocator


class Installed:
    """Runs tests as ever; the allocator serves from here to the end, whatever modules make at import included."""

    how = "installed for the whole run"

    def __init__(self, allocators: list[Allocator]) -> None:
        self.allocators = allocators
        firsttouch.install(allocators[0])

    def pytest_unconfigure(self) -> None:
        """Leaves the process as it was."""
        firsttouch.uninstall()

    def pytest_report_header(self) -> str:
        """What serves, and how."""
        return f"firsttouch: {' and '.join(map(repr, self.allocators))}, {self.how}"


class Forking(Installed):
    """Runs each test in a process of its own."""

    how = "each test in a process of its own"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """One test, from its fixtures of all scopes to their end."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.reports(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """What is to be reported of a test."""
        raise NotImplementedError

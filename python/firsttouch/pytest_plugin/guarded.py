"""``--firsttouch=guarded``: tests that access arrays out of bounds fail, by name."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from firsttouch import _firsttouch
from firsttouch.pytest_plugin.child import run
from firsttouch.pytest_plugin.crash import reports_of
from firsttouch.pytest_plugin.installed import Forking


class Guarded(Forking):
    """Runs each test in a child, so that a crash affects only that test; the canaries are checked after each phase."""

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Return the reports of a test."""
        return reports_of(item, run(item, self._found))  # overruns found before, at import, are not this test's fault

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Report out-of-bounds writes of the setup."""
        return (yield from self._watched(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Report out-of-bounds writes of the test."""
        return (yield from self._watched(item, "call"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Report out-of-bounds writes of the teardown."""
        return (yield from self._watched(item, "teardown"))

    def _watched(self, item: pytest.Item, when: str) -> Generator[None, object, object]:
        try:
            result = yield
        except BaseException:
            if text := self._found():
                item.add_report_section(when, "by firsttouch", text)
            raise
        if text := self._found():
            pytest.fail(text, pytrace=False)
        return result

    def _found(self) -> str:
        """Describe the overruns found since the last call."""
        return "\n".join(_sentence(*hit) for hit in _firsttouch.overruns(self.allocators[0]))


def _sentence(address: int, asked: int, at: int) -> str:
    if at < address:
        return f"out of bounds: something wrote {address - at} bytes before an array of {asked} bytes"
    beyond = at - address - asked
    where = "right behind" if beyond == 0 else f"{beyond} bytes behind"
    return f"out of bounds: something wrote {where} an array of {asked} bytes"

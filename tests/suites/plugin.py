"""A pytest plugin: installs firsttouch before tests are collected, and keeps every test's outcome.

FIRSTTOUCH_SUITE says how: `plain` leaves NumPy alone, `install` installs; with `functions` numpy.zeros is
firsttouch.zeros and so on, too; anything else is the expression of an allocator to install. FIRSTTOUCH_SUITE_OUTCOMES
names the file for the outcomes.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WAY = os.environ["FIRSTTOUCH_SUITE"]

_outcomes: dict[str, str] = {}
#: From the least to the most telling: a test that passes and fails in its teardown has failed.
_RANK = ["passed", "skipped", "xfailed", "xpassed", "failed", "error"]


def _install() -> None:
    import firsttouch

    if WAY == "functions":
        import numpy as np
        import numpy.ma  # before, as it makes docstrings of its own from those of NumPy's functions

        for name in firsttouch.arrays.__all__:
            setattr(np, name, getattr(firsttouch, name))
    firsttouch.install(None if WAY in ("install", "functions") else WAY)


if WAY != "plain":
    _install()


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    if report.failed and report.when != "call":
        return "error"
    return report.outcome


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seen, new = _outcomes.get(report.nodeid, "passed"), _outcome(report)
    _outcomes[report.nodeid] = max(seen, new, key=_RANK.index)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _outcomes[report.nodeid] = "error"
    elif report.skipped:
        _outcomes[report.nodeid] = "skipped"


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish() -> Iterator[Any]:
    yield
    pooled: dict[str, int] = {}
    if WAY != "plain":
        import firsttouch

        pooled = firsttouch.stats()._asdict() | {"installed": int(firsttouch.is_installed())}
    Path(os.environ["FIRSTTOUCH_SUITE_OUTCOMES"]).write_text(
        json.dumps({"outcomes": _outcomes, "pooled": pooled}), encoding="utf-8"
    )

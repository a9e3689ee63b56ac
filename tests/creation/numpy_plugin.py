"""A pytest plugin for NumPy's own tests: numpy.zeros is firsttouch.zeros, and so on, from before they are collected.

FIRSTTOUCH_SUITE says how: `plain` leaves NumPy alone; with `install` the process's pool is installed.
"""

from collections.abc import Iterator

import numpy as np
import numpy.ma  # before, as it makes docstrings of its own from those of NumPy's functions
import pytest

from tests.numpy_suite.plugin import (
    WAY,
    pytest_collectreport,
    pytest_runtest_logreport,
)
from tests.numpy_suite.plugin import pytest_sessionfinish as write_outcomes

__all__ = ["pytest_collectreport", "pytest_runtest_logreport", "pytest_sessionfinish"]

if WAY != "plain":
    import firsttouch
    from firsttouch import _firsttouch, arrays

    for name in arrays.__all__:
        setattr(np, name, getattr(firsttouch, name))


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish() -> Iterator[None]:
    if WAY != "plain":
        assert firsttouch.get_allocator() == _firsttouch.default_pool()
        assert all(getattr(np, name) is getattr(firsttouch, name) for name in arrays.__all__)
    return (yield from write_outcomes())

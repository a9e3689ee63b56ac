"""``pytest --firsttouch=guarded|filled``: run any test suite on memory that exposes misuse.

pytest loads this module in every environment where the package is installed. It is not part of the package, which
imports NumPy: without the option nothing else is imported.
"""

from __future__ import annotations

import pytest

_HELP = (
    "serve NumPy's arrays from an allocator of firsttouch. 'guarded': arrays end at an inaccessible page, and each "
    "test runs in a process of its own: reading or writing out of bounds, or after the end of an array, fails by name. "
    "'filled': new memory is filled with patterns, and tests whose results depend on it fail. Or any expression, like "
    "'guarded(side=\"before\")'. In these two modes, which run each test in a process of its own, plugins that rerun "
    "failed tests have no effect"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--firsttouch``."""
    group = parser.getgroup("firsttouch", "memory behind NumPy's arrays (firsttouch)")
    group.addoption("--firsttouch", metavar="ALLOCATOR", default=None, help=_HELP)


def pytest_configure(config: pytest.Config) -> None:
    """Start the mode that the option names."""
    text = config.getoption("firsttouch", None)
    if text is not None:
        from firsttouch.pytest_plugin import begin

        begin(config, text)

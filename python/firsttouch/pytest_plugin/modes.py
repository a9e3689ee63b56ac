"""Selects how tests are run from the argument of ``--firsttouch``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from firsttouch import _firsttouch
from firsttouch._internal.resolve import parse
from firsttouch.pytest_plugin.filled import Filled
from firsttouch.pytest_plugin.guarded import Guarded
from firsttouch.pytest_plugin.installed import Installed
from firsttouch.pytest_plugin.tracked import Tracked

if TYPE_CHECKING:
    from firsttouch import Allocator

#: Expressions of the bare words. Freed memory that is kept detects use after free; two fill patterns expose more than
#: one; a pool would leave small arrays to NumPy, untracked.
WORDS = {
    "guarded": ("guarded(keep='64 MiB')",),
    "filled": ("filled(on_allocate=255)", "filled(on_allocate=127)"),
    "tracked": ("tracked(malloc(), lines=True)",),
}
_MODES = {"guarded": Guarded, "filled": Filled, "tracked": Tracked}


def begin(config: pytest.Config, text: str) -> None:
    """Register the mode for this run; raise a usage error if the argument or the platform does not allow it."""
    if int(pytest.__version__.split(".")[0]) < 8:
        raise pytest.UsageError(f"--firsttouch needs pytest 8 or newer; this is {pytest.__version__}")
    if not _firsttouch.BACKEND or not hasattr(os, "fork"):
        raise pytest.UsageError("--firsttouch: firsttouch has no backend for this platform")
    text = text.strip()
    expressions = WORDS.get(text, (text,))
    mode = _MODES.get(text.partition("(")[0].strip(), Installed)
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

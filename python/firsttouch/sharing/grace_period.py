"""The exit grace period: a process that ends waits a moment for its handles in flight, whose openers need it alive.

Processes of multiprocessing end without atexit, so it is registered with multiprocessing, too, once that is loaded.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Any

from firsttouch import _firsttouch

_SECONDS = 2.0
_left = _SECONDS  # the time that this process still waits in total
_attached = False


def _wait() -> None:
    global _left
    began = time.monotonic()
    _firsttouch.shared_wait_until_opened(_left)
    _left = max(0.0, _left - (time.monotonic() - began))


def _register(util: Any) -> None:
    # Queues pickle what they flush, at -5, and multiprocessing joins its children before that.
    util.Finalize(None, _wait, exitpriority=-100)


def _attach() -> None:
    """Make processes of multiprocessing wait as well, if it is loaded by now."""
    global _attached
    util: Any = sys.modules.get("multiprocessing.util")
    if _attached or not hasattr(util, "register_after_fork") or not hasattr(util, "Finalize"):
        return
    _attached = True
    _register(util)
    # A child of multiprocessing, forked or spawned, clears its finalizers before it begins.
    util.register_after_fork(sys.modules[__name__], lambda _: _register(util))


def _begin_again() -> None:
    global _left
    _left = _SECONDS
    _attach()


atexit.register(_wait)
_attach()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)

"""The exit grace period: a process that ends waits a moment for its handles in flight, whose openers need it alive."""

from __future__ import annotations

import os
import sys
from multiprocessing import util

from firsttouch import _firsttouch

_SECONDS = 2.0


def _wait() -> None:
    _firsttouch.shared_wait_until_opened(_SECONDS)


def _register() -> None:
    # Queues pickle what they flush, at -5, and multiprocessing joins its children before that. A finalizer belongs to
    # the process that registered it.
    util.Finalize(None, _wait, exitpriority=-100)


_register()
# A child inherits finalizers and ignores them; one of multiprocessing forgets them all, and ends without atexit.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_register)
util.register_after_fork(sys.modules[__name__], lambda _: _register())

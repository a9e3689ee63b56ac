"""A process that ends waits a while for its handles under way: who opens them needs it alive.

Processes of multiprocessing end without atexit. It is never loaded for them: it is there before the first of them.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from firsttouch import _firsttouch

_SECONDS = 2.0
_known = False


def _linger() -> None:
    _firsttouch.shared_linger(_SECONDS)


def _be_the_last(util: Any) -> None:
    # Queues pickle what they flush, at -5; whoever comes in only then is not called any more.
    util.Finalize(None, _linger, exitpriority=-100)


def _attach() -> None:
    """Has the children of multiprocessing wait, too, where it is loaded by now."""
    global _known
    util: Any = sys.modules.get("multiprocessing.util")
    if _known or not hasattr(util, "register_after_fork") or not hasattr(util, "Finalize"):
        return
    _known = True
    _be_the_last(util)
    # A child that multiprocessing forks, or starts anew, forgets all of it before it begins.
    util.register_after_fork(sys.modules[__name__], lambda _: _be_the_last(util))


atexit.register(_linger)
_attach()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_attach)

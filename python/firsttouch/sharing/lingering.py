"""A process that ends waits a while for its handles under way: who opens them needs it alive."""

from __future__ import annotations

import atexit
import sys
from multiprocessing import util

from firsttouch import _firsttouch

_SECONDS = 2.0


def _linger() -> None:
    _firsttouch.shared_linger(_SECONDS)


def _be_the_last() -> None:
    # Queues pickle what they flush, at -5; whoever comes in only then is not called any more.
    util.Finalize(None, _linger, exitpriority=-100)


atexit.register(_linger)
_be_the_last()
# A child that multiprocessing forks forgets all of it, and ends without atexit.
util.register_after_fork(sys.modules[__name__], lambda _: _be_the_last())

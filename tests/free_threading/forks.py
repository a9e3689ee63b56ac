"""Children of a process whose other threads are in the middle of something."""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which a child stands still."""

UNFORKED = threading.RLock()
"""Whoever forks holds it, so that a child finds what it guards unchanged and free.

Without the GIL a list and a dictionary have locks of their own, which a child inherits as another thread held them. One
lock for all, which a thread may take again: a collection can free arrays while it is held.
"""
os.register_at_fork(before=UNFORKED.acquire, after_in_parent=UNFORKED.release, after_in_child=UNFORKED.release)


def forked(work: Callable[[], object]) -> None:
    """Run `work` in a child; an error if it raises, is killed, or stands still."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    end = time.monotonic() + PATIENCE
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGABRT)  # faulthandler tells where it stands
            os.waitpid(child, 0)
            raise AssertionError("a forked child stands still")
        time.sleep(0.001)
    if status:
        raise AssertionError(f"a forked child ended with {os.waitstatus_to_exitcode(status)}")

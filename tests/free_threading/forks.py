"""Children of a process whose other threads are in the middle of something."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which a child stands still."""


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

"""The start-up hook, which runs in every interpreter that finds FIRSTTOUCH_RUN set.

firsttouch_start.pth calls it; from Python 3.15 on, firsttouch_start.start in its place (PEP 829). It runs before the
program, so it imports next to nothing, prints nothing and raises nothing.

PYTEST_DONT_REWRITE: pytest would rewrite the packages of a plugin, and warn if they are loaded already.
"""

import os
import sys

VARIABLE = "FIRSTTOUCH_RUN"

_begun = False


def _trusted() -> bool:
    """Return whether this interpreter obeys its environment: not under -I or -E, nor if it is set-uid."""
    if sys.flags.ignore_environment:
        return False
    return not hasattr(os, "getuid") or (os.getuid(), os.getgid()) == (os.geteuid(), os.getegid())


def start() -> None:
    """Begin if the variable is set: the entry point in firsttouch_start.start, which is called unconditionally."""
    if os.environ.get(VARIABLE):
        begin()


def begin() -> None:
    """Watch for the first import of NumPy, and for the end of the process."""
    global _begun
    if _begun or not _trusted():  # the files may be in two site directories
        return
    _begun = True
    try:
        from _firsttouch_start import ending, pooling

        ending.watch(os.environ.get(VARIABLE, ""))
        pooling.watch()
    except Exception as error:
        from _firsttouch_start import speak

        speak.failure("the start", error)

"""What a program inherits from this process, without what Python changed in it at its own start."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal takes longer to import than the rest of the command
import os

#: What Python sets LC_CTYPE to where the locale is C (PEP 538).
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")


def environment() -> dict[str, str]:
    """Return the environment with LC_CTYPE as it was given: a program in another language obeys it."""
    found = dict(os.environ)
    if found.get("LC_CTYPE") in _COERCED:
        try:
            with open("/proc/self/environ", "rb") as file:  # which setenv(3) does not change
                given = file.read().split(b"\0")
        except OSError:
            return found
        del found["LC_CTYPE"]
        for entry in given:
            if entry.startswith(b"LC_CTYPE="):
                found["LC_CTYPE"] = os.fsdecode(entry.removeprefix(b"LC_CTYPE="))
    return found


def restore_signals() -> None:
    """Restore the signals that Python ignores, before another program takes this process's place."""
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)

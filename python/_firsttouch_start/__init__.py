"""What the line in firsttouch_start.pth calls, in every interpreter that finds FIRSTTOUCH_RUN set.

It runs before the program, so it imports next to nothing, prints nothing and raises nothing.

PYTEST_DONT_REWRITE: pytest rewrites the packages of a plugin, and warns where they are loaded already.
"""

import os

VARIABLE = "FIRSTTOUCH_RUN"

_begun = False


def begin() -> None:
    """Watch for NumPy's first import, and for the end of the process."""
    global _begun
    if _begun:  # the .pth file may stand in two site directories
        return
    _begun = True
    try:
        from _firsttouch_start import ending, pooling

        ending.watch(os.environ.get(VARIABLE, ""))
        pooling.watch()
    except Exception as error:
        from _firsttouch_start import speak

        speak.failure("the start", error)

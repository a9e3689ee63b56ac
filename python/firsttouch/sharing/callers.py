"""The call stack: what a handle or an error means depends on who pickles or unpickles."""

from __future__ import annotations

import sys
from typing import Any


def include(module: str) -> bool:
    """Return whether a function of that module is on the call stack."""
    frame: Any = sys._getframe(1) if module in sys.modules else None
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            return True
        frame = frame.f_back
    return False

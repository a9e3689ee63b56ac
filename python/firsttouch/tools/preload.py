"""The library that serves the large blocks of programs, whatever language they are written in."""

from __future__ import annotations

import platform
from pathlib import Path

#: Where `make preload` and the wheel put the library.
FILE = Path(__file__).parents[1] / "_lib" / "libfirsttouch_preload.so"

#: The variable with the library's settings (crates/firsttouch-preload/src/settings.rs).
VARIABLE = "FIRSTTOUCH_PRELOAD"


def missing() -> str | None:
    """Return why the library cannot be used here, and what to do; None if it can."""
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return "only Python programs can be served here: replacing malloc requires Linux with glibc"
    if not FILE.exists():
        return f"{FILE.name} is missing: the wheel of firsttouch includes it; in a checkout, `make preload` builds it"
    return None

"""The library that serves the large blocks of programs, whatever language they are written in."""

from __future__ import annotations

import os

#: Where `make preload` and the wheel put the library.
FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "_lib", "libfirsttouch_preload.so")

#: The variable with the library's settings (crates/firsttouch-preload/src/settings.rs).
VARIABLE = "FIRSTTOUCH_PRELOAD"


def _glibc() -> list[int]:
    try:
        library, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (AttributeError, ValueError, OSError):  # another system, or a C library that does not know the name
        return []
    return [int(part) for part in version.split(".") if part.isdecimal()] if library == "glibc" else []


#: The version of glibc; nothing where another C library is.
GLIBC = _glibc()


def missing() -> str | None:
    """Return why the library cannot be used here, and what to do; None if it can."""
    if not GLIBC:
        return "only Python programs can be served here: replacing malloc requires Linux with glibc"
    if not os.path.exists(FILE):
        name = os.path.basename(FILE)
        return f"{name} is missing: the wheel of firsttouch includes it; in a checkout, `make preload` builds it"
    return None

"""Buffers in code that Numba compiles."""

from typing import Any


def numba_type(_buffer: object) -> Any:
    """Return the Numba type of a buffer. Only Numba asks for it, and only then is support for it loaded."""
    from firsttouch.numba import scratch_buffer

    return scratch_buffer

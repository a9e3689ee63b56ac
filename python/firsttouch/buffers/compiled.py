"""Buffers in code that Numba compiles."""

from typing import Any


def numba_type(_buffer: object) -> Any:
    """The type of a buffer there. Only Numba asks for it, and only then is our half for it loaded."""
    from firsttouch.numba import scratch_buffer

    return scratch_buffer

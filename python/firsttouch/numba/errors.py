"""Exceptions of compiled code. The message is fetched when the exception is created, in the thread that failed."""

import threading

from firsttouch import _firsttouch


def in_use(owner: int, caller: int) -> str:
    """Return a message that names the thread using a buffer and the thread that tried to; zero stands for none."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    user = f"thread {names.get(owner, hex(owner))!r}" if owner else "no call of compiled code"
    wanted = f"thread {names.get(caller, hex(caller))!r}"
    return (
        f"this scratch buffer is in use by {user}, and {wanted} may not use it: give each thread a buffer of its own, "
        "and a loop in parallel (prange) a firsttouch.numba.ThreadBuffers"
    )


def _reason() -> str:
    text, threads = _firsttouch.numba_failure()
    return in_use(*threads) if threads else text


class BufferFullError(MemoryError):
    """A buffer is full; the message states what was requested and which limit was exceeded."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(args or (_reason(),)))


class MarkError(ValueError):
    """A buffer was rewound in the wrong order, or to another buffer's mark."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(args or (_reason(),)))


class ShapeError(ValueError):
    """A shape has a negative dimension, or more bytes than can be addressed."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(args or (_reason(),)))


class ThreadError(RuntimeError):
    """A buffer was used in a thread other than that of the call it was passed to."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(args or (_reason(),)))


# Keys are the error codes of the native module.
CODES = {1: BufferFullError, 2: MarkError, 3: ThreadError, 4: ShapeError}

_firsttouch.register(numba_in_use=in_use, numba_errors=CODES)

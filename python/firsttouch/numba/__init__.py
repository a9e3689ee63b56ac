"""Scratch buffers inside code that Numba compiles.

A buffer made in Python is passed to compiled code as an argument and behaves in the same way there::

    @njit(cache=True)
    def step(buf, x):
        mark = buf.mark()
        y = buf.empty(x.shape, x.dtype)    # a pointer increment
        y[:] = x + 1
        total = y.sum()
        buf.rewind(mark)                   # its memory can be used again
        return total

    step(ft.ScratchBuffer(), np.arange(30))

Arrays never dangle. An array that is alive at a rewind, because it was returned, stored in a list or is used later,
keeps its memory until it is freed; only other memory is reused. Each call from Python is a scope: memory above its
marks is released when it returns, also by an exception. As always in Numba, references that an exception unwinds in
compiled code are leaked.

A mark cannot leave the function that made it. A buffer is used by one thread at a time; in a ``prange`` loop each
thread takes its own from a :class:`ThreadBuffers`.
"""

from firsttouch.numba.runtime import load as _load

_load()

from firsttouch.numba import kinds as _kinds  # noqa: E402 - only once Numba is known to be there
from firsttouch.numba import methods as _methods  # noqa: E402
from firsttouch.numba.errors import BufferFullError, MarkError, ShapeError, ThreadError  # noqa: E402
from firsttouch.numba.kinds import scratch_buffer, thread_buffers  # noqa: E402
from firsttouch.numba.threads import ThreadBuffers  # noqa: E402

_kinds.register()
_methods.register()

__all__ = [
    "BufferFullError",
    "MarkError",
    "ShapeError",
    "ThreadBuffers",
    "ThreadError",
    "scratch_buffer",
    "thread_buffers",
]

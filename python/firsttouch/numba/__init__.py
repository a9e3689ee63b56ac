"""Scratch buffers inside code that Numba compiles.

A buffer that was made in Python goes into compiled code as an argument, and means the same there::

    @njit(cache=True)
    def step(buf, x):
        mark = buf.mark()
        y = buf.empty(x.shape, x.dtype)    # a pointer increment
        y[:] = x + 1
        total = y.sum()
        buf.rewind(mark)                   # and its memory is free again
        return total

    step(ft.ScratchBuffer(), np.arange(30))

Arrays are never left dangling. What is alive at a rewind, because it was returned, put into a list or is used again,
keeps its memory until it dies; only the rest is used again. A call from Python is a scope of its own: what its marks
left, after an exception too, is free when it returns. As always with Numba, references that an exception passes by in
compiled code are not given back.

A mark stays in the function that made it. A buffer is for one thread at a time; in a ``prange`` loop each thread takes
its own from a :class:`ThreadBuffers`.
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

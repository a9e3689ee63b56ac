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

A mark cannot leave the function that made it. The threads of a ``prange`` loop share a buffer through a
:class:`ThreadBuffers`.
"""

from typing import Self

import numba as _numba
from llvmlite import binding as _binding
from numba.core.runtime import _nrt_python

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer, NumbaBuffers, ScratchBuffer

for _name, _address in _firsttouch.numba_setup(_nrt_python.c_helpers["get_api"]):
    _binding.add_symbol(_name, _address)

from firsttouch.numba.compiled import scratch_buffer, thread_buffers  # noqa: E402 - it calls these functions


class ThreadBuffers(NumbaBuffers):
    """A scratch buffer for a ``prange`` loop, in which ``buffers.local()`` is what the thread uses.

    Parameters
    ----------
    buffer : Buffer, optional
        Where all threads take their chunks from. The default is a new :class:`firsttouch.ScratchBuffer`.

    Attributes
    ----------
    buffer : Buffer
        The buffer.

    Raises
    ------
    TypeError
        If `buffer` is not one.

    See Also
    --------
    firsttouch.ScratchBuffer : What one thread uses.

    Examples
    --------
    >>> from numba import njit, prange
    >>> from firsttouch.numba import ThreadBuffers
    >>> @njit(parallel=True)
    ... def sums(buffers, x, out):
    ...     for i in prange(len(x)):
    ...         buf = buffers.local()
    ...         mark = buf.mark()
    ...         row = buf.empty(x.shape[1])
    ...         row[:] = x[i] * x[i]
    ...         out[i] = row.sum()
    ...         buf.rewind(mark)
    >>> out = np.zeros(3)
    >>> sums(ThreadBuffers(), np.ones((3, 4)), out)
    >>> out
    array([4., 4., 4.])

    """

    def __new__(cls, buffer: Buffer | None = None) -> Self:
        """Make it for as many threads as Numba may start."""
        return super().__new__(cls, ScratchBuffer() if buffer is None else buffer, _numba.config.NUMBA_NUM_THREADS)

    def __repr__(self) -> str:
        return f"ThreadBuffers({self.buffer!r})"


__all__ = ["ThreadBuffers", "scratch_buffer", "thread_buffers"]

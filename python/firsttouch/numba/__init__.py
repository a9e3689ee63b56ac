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

import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Self

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer, NumbaBuffers, ScratchBuffer

_OLDEST = (0, 60)


def _load() -> None:
    """Joins the two; once is enough.

    Raises:
        ImportError: without Numba, or with one that is too old.

    """
    wanted = f"firsttouch.numba needs Numba {_OLDEST[0]}.{_OLDEST[1]} or newer"
    try:
        import numba  # noqa: F401 - the import is the test
    except ImportError as error:
        raise ImportError(f"{wanted}, which cannot be imported here ({error}): pip install numba") from error
    found = version("numba")
    if tuple(int(number) for number in re.findall(r"\d+", found)[:2]) < _OLDEST:
        raise ImportError(f"{wanted}; this is Numba {found}: pip install --upgrade numba")

    from llvmlite import binding
    from numba.core.runtime import _nrt_python

    for name, address in _firsttouch.numba_setup(_nrt_python.c_helpers["get_api"]).items():
        binding.add_symbol(name, address)


_load()

import numba as _numba  # noqa: E402 - only once it is known to be there

from firsttouch.numba import kinds as _kinds  # noqa: E402
from firsttouch.numba.kinds import scratch_buffer, thread_buffers  # noqa: E402
from firsttouch.numba.native import BufferFullError, MarkError, ShapeError, ThreadError  # noqa: E402

_kinds.register()


class ThreadBuffers(NumbaBuffers):
    """One scratch buffer for each thread of a ``prange`` loop, in which ``buffers.local()`` is the thread's own.

    Parameters
    ----------
    make : callable, optional
        Called without arguments, returns a new buffer. The default is :class:`firsttouch.ScratchBuffer`.
    threads : int, optional
        Number of buffers. The default is the number of Numba's threads.

    Raises
    ------
    ValueError
        If `threads` is less than 1, or `make` returns the same buffer twice.

    See Also
    --------
    firsttouch.ScratchBuffer : The buffer of one thread.

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

    def __new__(cls, make: Callable[[], Buffer] = ScratchBuffer, threads: int | None = None) -> Self:
        """Make the buffers."""
        count = _numba.config.NUMBA_NUM_THREADS if threads is None else threads
        if count < 1:
            raise ValueError(f"threads={threads}: a loop runs in at least one thread")
        return super().__new__(cls, [make() for _ in range(count)])

    def __len__(self) -> int:
        return len(self.buffers)

    def __repr__(self) -> str:
        return f"<ThreadBuffers: {len(self)} x {self.buffers[0]!r}>"


__all__ = [
    "BufferFullError",
    "MarkError",
    "ShapeError",
    "ThreadBuffers",
    "ThreadError",
    "scratch_buffer",
    "thread_buffers",
]

"""A buffer for each thread of a parallel loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numba

from firsttouch._firsttouch import Buffer, NumbaBuffers, ScratchBuffer


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
        count = numba.config.NUMBA_NUM_THREADS if threads is None else threads
        if count < 1:
            raise ValueError(f"threads={threads}: a loop runs in at least one thread")
        return super().__new__(cls, [make() for _ in range(count)])

    def __len__(self) -> int:
        return len(self.buffers)

    def __repr__(self) -> str:
        return f"<ThreadBuffers: {len(self)} x {self.buffers[0]!r}>"

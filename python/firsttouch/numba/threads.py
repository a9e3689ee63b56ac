"""A buffer for each thread of a loop in parallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numba

from firsttouch._firsttouch import Buffer, JitBuffers, ScratchBuffer


class ThreadBuffers(JitBuffers):
    """A buffer for each thread of a ``prange`` loop; inside it, ``buffers.local()`` is that of the thread that runs.

    Args:
        make: Makes one; :class:`firsttouch.ScratchBuffer` unless told otherwise.
        threads: How many; as many as Numba's pool has unless told otherwise.

    Raises:
        ValueError: for no threads at all, or where ``make`` gives the same buffer twice.

    Example::

        @njit(parallel=True)
        def rows(buffers, x, out):
            for i in prange(len(x)):
                buf = buffers.local()
                mark = buf.mark()
                t = buf.empty(x.shape[1])
                ...
                buf.rewind(mark)

        rows(ThreadBuffers(), x, out)

    """

    def __new__(cls, make: Callable[[], Buffer] = ScratchBuffer, threads: int | None = None) -> Self:
        """Makes the buffers."""
        count = numba.config.NUMBA_NUM_THREADS if threads is None else threads
        if count < 1:
            raise ValueError(f"threads={threads}: a loop runs in at least one thread")
        return super().__new__(cls, [make() for _ in range(count)])

    def __len__(self) -> int:
        return len(self.buffers)

    def __repr__(self) -> str:
        return f"<ThreadBuffers: {len(self)} x {self.buffers[0]!r}>"

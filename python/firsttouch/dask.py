"""Pooled memory for the arrays of Dask workers: one line for a whole cluster.

::

    client.register_plugin(firsttouch.dask.ArrayMemory())

It reaches running workers and those that join or restart later, in all their threads. The same from a worker's start,
without a client: ``dask worker --preload firsttouch.dask``, or this module's name in Dask's setting
``distributed.worker.preload``.
"""

from __future__ import annotations

from contextvars import Context
from typing import Any, Literal

import dask.config
from distributed import Worker, WorkerPlugin

import firsttouch
from firsttouch import sharing
from firsttouch._internal.resolve import checked
from firsttouch.custom import AllocatorLike
from firsttouch.process import arrays_only

sharing.register_with_dask()  # arrays shared before distributed was imported would be copied

__all__ = ["ArrayMemory", "dask_setup"]

#: The workers of this process that are served: several where workers are threads. All run in one event loop.
_served: set[Worker] = set()
#: The allocator before them, and whether it served arrays alone: a client may have installed one in its process.
_before: tuple[firsttouch.Allocator | None, bool] = firsttouch.numpy_default(), False


class ArrayMemory(WorkerPlugin):  # type: ignore[misc] # (Dask need not be there for the types)
    """Serve the arrays of Dask workers from an allocator, in every thread of their processes.

    Parameters
    ----------
    allocator : AllocatorLike, optional
        Allocator, or its expression; it travels as text. The default is the worker's own pool.
    limit : "auto", optional
        Budget for the arrays of a worker, beyond which a task gets a :exc:`MemoryError` where its worker would have
        been killed: the memory at which Dask ends a worker (by default 0.95 of its limit) less what the worker holds
        already, but at least half of its limit. The default is no budget, and so is ``"auto"`` where a worker has no
        limit.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above.
    RuntimeError
        In ``register_plugin``, if a worker cannot do this; the message names the worker. Workers that join later log
        it. They go on with NumPy's own memory.

    See Also
    --------
    firsttouch.install : Does the same in one process.

    Notes
    -----
    The plugin reaches running workers and those that join or restart later. Registered again, the newer plugin
    replaces the older. A worker that is a thread of the client's process (``LocalCluster(processes=False)``) shares
    the client's memory, whose arrays are served as well until the worker closes.

    Examples
    --------
    >>> from firsttouch.dask import ArrayMemory
    >>> plugin = ArrayMemory("pool(max_idle='1 GiB')", limit="auto")
    >>> client.register_plugin(plugin)  # doctest: +SKIP

    """

    name = "firsttouch"

    def __init__(self, allocator: AllocatorLike | None = None, limit: Literal["auto"] | None = None) -> None:
        if limit not in (None, "auto"):
            raise ValueError(
                f"limit={limit!r:.40}: give 'auto' or, for a size, ArrayMemory(\"limited(pool(), '4 GiB')\")"
            )
        if allocator is not None and not isinstance(allocator, str):
            allocator = repr(checked(allocator, "ArrayMemory()"))
        self._given = (allocator, limit)

    def setup(self, worker: Worker) -> None:
        """Begin to serve a worker; called by Dask in the worker.

        Parameters
        ----------
        worker : distributed.Worker
            The worker, before its first task or between two tasks.

        Raises
        ------
        RuntimeError
            If it cannot be served.

        """
        global _before
        if not _served:
            _before = Context().run(firsttouch.get_allocator), arrays_only() is not None
        text, limit = self._given
        if limit and worker.memory_manager.memory_limit is not None:
            text = f"limited({text or 'pool()'}, {_budget(worker)})"
        try:
            firsttouch.install(text, trim_c_library=True)
        except Exception as error:
            raise RuntimeError(f"firsttouch on worker {worker.address} (name {worker.name!r}): {error}") from None
        _served.add(worker)

    def teardown(self, worker: Worker) -> None:
        """Cease to serve a worker; called by Dask when the worker closes or the plugin is removed.

        Parameters
        ----------
        worker : distributed.Worker
            The worker. Its arrays stay valid.

        """
        if worker in _served:
            _served.remove(worker)
            if not _served and _before[0] == firsttouch.numpy_default():
                firsttouch.uninstall()
            elif not _served:
                firsttouch.install(_before[0], arrays_only=_before[1])

    def __repr__(self) -> str:
        given = zip(("allocator", "limit"), self._given, strict=True)
        return f"ArrayMemory({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"


async def dask_setup(server: Any) -> None:
    """Serve a worker from its start; a later ``register_plugin`` replaces it.

    Parameters
    ----------
    server : distributed.Worker
        The worker.

    Examples
    --------
    In a shell, where Dask calls it: ``dask worker --preload firsttouch.dask``.

    """
    await server.plugin_add(plugin=ArrayMemory())


def _budget(worker: Worker) -> int:
    """Return the number of bytes that the worker's arrays may use at once."""
    memory: int = worker.memory_manager.memory_limit
    used: int = worker.monitor.get_process_memory()
    killed_at: float = dask.config.get("distributed.worker.memory.terminate", None) or 1.0
    return max(int(memory * killed_at) - used, memory // 2)

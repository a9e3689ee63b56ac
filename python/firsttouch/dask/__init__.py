"""Pooled memory for the arrays of Dask workers: one line for a whole cluster.

::

    client.register_plugin(firsttouch.dask.ArrayMemory())

It reaches running workers and those that join or restart later, in all their threads. The same from a worker's start,
without a client: ``dask worker --preload firsttouch.dask``, or this module's name in Dask's setting
``distributed.worker.preload``. The arguments of :class:`ArrayMemory` are then the settings ``firsttouch.allocator``,
``firsttouch.numa``, ``firsttouch.huge`` and ``firsttouch.limit`` of Dask's configuration (in a file, or as
``DASK_FIRSTTOUCH__LIMIT=auto`` and so on in the environment).

A failure on a worker raises an error that names the worker, which continues with NumPy's own memory.
"""

try:
    import distributed as _distributed  # noqa: F401 (is it installed?)
except ImportError as _error:
    raise ImportError(f"firsttouch.dask needs Dask's distributed ({_error}): pip install 'firsttouch[dask]'") from None

from firsttouch.dask.plugin import ArrayMemory
from firsttouch.dask.preloaded import dask_setup
from firsttouch.sharing import with_dask as _with_dask
from firsttouch.sharing.arrays import SharedArray as _SharedArray

_with_dask.register(_SharedArray)  # arrays shared before distributed was imported would be copied

__all__ = ["ArrayMemory", "dask_setup"]

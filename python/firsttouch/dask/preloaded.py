"""The hook that Dask calls in a worker started with ``--preload firsttouch.dask``."""

from __future__ import annotations

from distributed import Worker

from firsttouch.dask.plugin import ArrayMemory


async def dask_setup(server: object) -> None:
    """Serve a worker from its start, as Dask's settings say; a later ``register_plugin`` replaces it.

    Parameters
    ----------
    server : distributed.Worker
        The worker.

    Raises
    ------
    TypeError
        If `server` is not a worker, or a setting is invalid.

    See Also
    --------
    ArrayMemory.configured : What the settings are.

    Examples
    --------
    In a shell, where Dask calls it: ``dask worker --preload firsttouch.dask``.

    """
    if not isinstance(server, Worker):
        kind = type(server).__name__
        raise TypeError(
            f"firsttouch.dask is a preload for workers (dask worker --preload firsttouch.dask), and this is a {kind}"
        )
    await server.plugin_add(plugin=ArrayMemory.configured())

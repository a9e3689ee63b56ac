"""Errors of opening a shared array's handle."""


class SharedArrayError(RuntimeError):
    """A shared array cannot be opened here: its sender is on another host, has ended, or has released it.

    See Also
    --------
    firsttouch.shared : How long a handle can be opened.

    Notes
    -----
    It is not an :exc:`OSError`, which would end the workers of ``multiprocessing.Pool`` without a message.

    """


class LostOnTheWayError(SharedArrayError, ConnectionError):
    """The same between workers of Dask, which retry or recompute only after a connection has failed."""

"""What can go wrong where a shared array arrives."""


class SharedArrayError(RuntimeError):
    """A shared array can't be had here: another host, or its sender has ended or let it go.

    No :exc:`OSError`, at which the workers of ``multiprocessing.Pool`` would end without a word.
    """


class LostOnTheWayError(SharedArrayError, ConnectionError):
    """The same between workers of Dask, which ask again, or compute again, only where a connection failed."""

"""Arrays on memory that several processes of a host share, handed over without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from firsttouch.placement.pages import Huge
from firsttouch.placement.policies import PolicyLike
from firsttouch.sharing import making
from firsttouch.sharing.errors import SharedArrayError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["SharedArrayError", "share", "shared"]


def shared(
    shape: Any,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
    *,
    huge: Huge = False,
    numa: PolicyLike | None = None,
    populate: bool | int = False,
    strict: bool = False,
) -> np.ndarray:
    """Return a new array of zeros on memory that other processes of this host can map.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the new array.
    dtype : data-type, optional
        Data type, which must not contain objects. The default is float64.
    order : {"C", "F"}, optional
        Memory order.
    huge, numa, populate, strict : optional
        Placement, as for :func:`firsttouch.pages`. Transparent huge pages need
        ``/sys/kernel/mm/transparent_hugepage/shmem_enabled``.

    Returns
    -------
    ndarray
        Array of zeros of the given shape, dtype and order. What is computed from it is an ordinary array.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above.
    MemoryError
        If there is not enough memory.
    OSError
        If the system allows no further memory file; each shared array takes a file descriptor in each process.

    See Also
    --------
    share : Copy an existing array to shared memory.
    receipt : What was granted.

    Notes
    -----
    Pickled, by whatever means (``multiprocessing`` with any start method, joblib, a pipe), the array is a handle of a
    few hundred bytes. It arrives as an ordinary array on the same memory, and so do its views; a read-only array
    arrives read-only. A forked child shares the memory, and holds it until it ends. The memory is released when the
    last process releases it or dies, however it dies.

    A handle can be opened any number of times while its sender holds the array. After the sender has released it, a
    handle that nobody has opened can be opened once, within 60 seconds. Such arrays may take a quarter of the sender's
    file descriptors (``RLIMIT_NOFILE``) and, beyond 64 MiB and the newest array, a sixteenth of the memory or a quarter
    of what is free, whichever is less; the oldest goes first. A process that ends waits up to 2 seconds for handles in
    flight. Opening a handle in vain raises :exc:`firsttouch.SharedArrayError`.

    Examples
    --------
    >>> import pickle
    >>> a = ft.shared((2, 3))
    >>> b = pickle.loads(pickle.dumps(a[1]))  # as another process receives it
    >>> b[:] = 1
    >>> a
    SharedArray([[0., 0., 0.],
                 [1., 1., 1.]])

    """
    return making.zeros(shape, dtype, order, huge, numa, populate, strict)


def share(a: npt.ArrayLike) -> np.ndarray:
    """Return an array on shared memory: the array itself if its memory is shared already, else a copy.

    Parameters
    ----------
    a : array_like
        Array to share. Masked arrays and arrays of objects are refused.

    Returns
    -------
    ndarray
        Array with the same shape, dtype and values as `a`.

    Raises
    ------
    TypeError
        If `a` contains objects or is masked.
    MemoryError, OSError
        As for :func:`shared`.

    See Also
    --------
    shared : Make a new array on shared memory.

    Notes
    -----
    An array that arrived from another process is an ordinary array, and is pickled as a copy. Sharing it again, which
    copies nothing, makes it one to be passed on.

    Examples
    --------
    >>> ft.share([1, 2, 3])
    SharedArray([1, 2, 3])

    """
    return making.share(a)

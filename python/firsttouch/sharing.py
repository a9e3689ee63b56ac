"""Arrays on memory that several processes of a host share, handed over without a copy.

A pickled array is a *handle*: where its memory is, and where in that memory the array lies. Opening the handle maps the
memory.
"""

from __future__ import annotations

import atexit
import math
import operator
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import SharedMapping

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["SharedArrayError", "share", "shared"]

_MAX_BYTES = 2**63 - 1


class SharedArrayError(RuntimeError):
    """A shared array cannot be opened here: its sender is on another host, has ended, or has released it.

    See Also
    --------
    firsttouch.shared : How long a handle can be opened.

    Notes
    -----
    It is raised where the array is unpickled. A pool of processes does that between two tasks, and fails as with any
    object that cannot be unpickled.

    """


class SharedArray(np.ndarray):
    """An array, or a view of one, from :func:`firsttouch.shared` or :func:`firsttouch.sharing.share`.

    Results of computations are ordinary arrays. An instance whose memory is not shared, such as a copy, is pickled as
    any array.
    """

    __array_priority__ = -1.0

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Make results ordinary arrays; ``out=`` and in-place operations keep the array they were given."""
        if array is self:
            return self
        return array[()] if return_scalar else np.asarray(array)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a handle, whatever the protocol: nothing is copied, in the pickle or out of band.

        If a Dask worker spills, pickle the data: a handle would be valid only as long as the memory, which is about to
        be freed.
        """
        mapping = _mapping_of(self)
        if mapping is None or _is_called_by("distributed.spill"):
            return np.asarray(self).__reduce_ex__(protocol)
        offset = self.__array_interface__["data"][0] - mapping.address if self.size else 0
        return arrive, (mapping.handle(), offset, self.shape, self.strides, self.dtype, bool(self.flags.writeable))


def shared(
    shape: Any,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
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
    touch, migrate : Fault its pages in; move them to a node.

    Notes
    -----
    Pickled, by whatever means (``multiprocessing`` with any start method, joblib, a pipe), the array is a handle of a
    few hundred bytes. It arrives as an ordinary array on the same memory, and so do its views; a read-only array
    arrives read-only. A forked child shares the memory, and holds it until it ends. The memory is released when the
    last process releases it or dies, however it dies.

    A handle can be opened any number of times while its sender holds the array. After the sender has released it, the
    array stays for 60 seconds, until it was opened as often as it was pickled: by one handle twice, and another finds
    nothing. Such arrays may take a quarter of the sender's file descriptors (``RLIMIT_NOFILE``) and, beyond 64 MiB and
    the newest array, a quarter of the free memory; the oldest goes first. A process that ends waits up to 2 seconds for
    handles in flight. Opening one in vain raises :exc:`firsttouch.sharing.SharedArrayError`.

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
    model = np.empty(0, dtype)  # strings without a length get one, and subarrays become axes
    kind = model.dtype
    if kind.hasobject:
        raise TypeError(f"an array of {kind} cannot be shared: its items are addresses, meaningless elsewhere")
    if order not in ("C", "F"):
        raise ValueError(f"order={order!r:.40}: give 'C' or 'F'")
    dims = (*_dims(shape), *model.shape[1:])
    nbytes = math.prod(dims) * kind.itemsize
    if nbytes > _MAX_BYTES:
        raise ValueError(f"an array of shape {dims} and {kind} would have {nbytes} bytes, more than can be counted")
    mapping = SharedMapping(nbytes)
    _mapped[mapping.token, True] = mapping
    register_with_dask()
    return _on(mapping, 0, dims, None, kind, order).view(SharedArray)


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
    >>> ft.sharing.share([1, 2, 3])
    SharedArray([1, 2, 3])

    """
    masked = sys.modules.get("numpy.ma")  # NumPy imports it lazily, at the latest for such an array
    if masked is not None and isinstance(a, masked.MaskedArray):
        raise TypeError("a masked array is two arrays: share its .data and its .mask")
    array = np.asarray(a)
    if _mapping_of(array) is not None:
        return array.view(SharedArray)
    made = shared(array.shape, array.dtype, "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C")
    made[...] = array
    return made


def _dims(shape: Any) -> tuple[int, ...]:
    try:
        dims = tuple(map(operator.index, shape)) if np.iterable(shape) else (operator.index(shape),)
    except TypeError:
        raise TypeError(f"shape={shape!r:.60}: give a number or a tuple of numbers") from None
    if min(dims, default=0) < 0:  # no generator: CPython 3.13.0 crashes where it has no memory for one
        raise ValueError(f"shape={dims}: negative dimensions are not allowed")
    return dims


#: The mappings of this process, by the memory's name and whether it is writable. Each memory is mapped once.
_mapped: weakref.WeakValueDictionary[tuple[str, bool], SharedMapping] = weakref.WeakValueDictionary()


def _on(
    mapping: SharedMapping, offset: int, shape: Any, strides: Any, dtype: Any, order: Literal["C", "F"] = "C"
) -> np.ndarray:
    """Return an ordinary array on shared memory, which it keeps alive."""
    return np.ndarray(shape, dtype, np.asarray(mapping), offset, strides, order)


def _mapping_of(a: np.ndarray) -> SharedMapping | None:
    """Return the shared memory that an array is on.

    It is found by its address: the chain of bases may lead through any object, as in ``as_strided``.
    """
    if a.base is None:
        return None
    low, high = np.lib.array_utils.byte_bounds(a) if a.size else (a.__array_interface__["data"][0],) * 2
    for reference in _mapped.valuerefs():
        mapping = reference()
        if mapping is not None and mapping.address <= low and high <= mapping.address + mapping.nbytes:
            return mapping
    return None


# Opening handles.


def arrive(words: Any, offset: int, shape: Any, strides: Any, dtype: Any, write: bool) -> np.ndarray:
    """Return the array of a handle; in the process that sent it, one that can be sent again."""
    token, process = words[:2]
    if dtype.hasobject:
        raise ValueError(f"an array of {dtype} would hold addresses, which are meaningless here")
    if offset < 0:  # NumPy accepts it where there are no strides
        raise ValueError(f"this is not a valid handle of a shared array: offset {offset} lies before its memory")
    mapping = _mapped.get((token, write)) or (None if write else _mapped.get((token, True)))
    if mapping is None:
        mapping, why_not = SharedMapping.open(words, write)
        if mapping is None:
            raise SharedArrayError(why_not)
        mapping = _mapped.setdefault((token, write), mapping)  # another thread may have opened it meanwhile
    else:
        mapping.arrived()
    array = _on(mapping, offset, shape, strides, dtype)
    array.flags.writeable = write
    return array.view(SharedArray) if process == os.getpid() else array


# The library that pickles.


def _is_called_by(module: str) -> bool:
    """Return whether a function of that module is on the call stack."""
    frame: Any = sys._getframe(1) if module in sys.modules else None
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None


def register_with_dask() -> None:
    """Register handles with `distributed` if it is loaded: its own serialization of arrays would copy them."""
    protocol = sys.modules.get("distributed.protocol.serialize")
    if protocol is not None:
        protocol.dask_serialize.register(SharedArray, _leave_to_pickle)


def _leave_to_pickle(_: SharedArray) -> None:
    """Let `distributed` pickle a handle: a process can open it where nothing is registered yet."""
    raise NotImplementedError


# The grace period at the end of a process: it waits a moment for its handles in flight, whose openers need it alive.

_GRACE_SECONDS = 2.0
_left = _GRACE_SECONDS  # or nothing, once it waited in vain
_waits_in_multiprocessing = False


def _wait() -> None:
    global _left
    if not _firsttouch.shared_wait_until_opened(_left):
        _left = 0.0


def _wait_in_multiprocessing() -> None:
    """Wait at the end of processes of multiprocessing too, if it is loaded: they end without `atexit`."""
    global _waits_in_multiprocessing
    util: Any = sys.modules.get("multiprocessing.util")
    if _waits_in_multiprocessing or not hasattr(util, "register_after_fork") or not hasattr(util, "Finalize"):
        return
    _waits_in_multiprocessing = True

    def register(_: object = None) -> None:
        # Queues pickle what they flush, at -5, and multiprocessing joins its children before that.
        util.Finalize(None, _wait, exitpriority=-100)

    register()
    # A child of multiprocessing, forked or spawned, clears its finalizers before it begins.
    util.register_after_fork(sys.modules[__name__], register)


def _begin_again() -> None:
    global _left
    _left = _GRACE_SECONDS
    _wait_in_multiprocessing()


atexit.register(_wait)
_wait_in_multiprocessing()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
register_with_dask()  # a Dask worker imports this module to open handles

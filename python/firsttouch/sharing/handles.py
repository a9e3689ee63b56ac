"""Handles: what is pickled of a shared array, and how it is opened."""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import SharedMapping
from firsttouch.sharing import callers, grace_period, missing  # noqa: F401 (the grace period registers itself)
from firsttouch.sharing.errors import LostOnTheWayError, SharedArrayError

if TYPE_CHECKING:
    import numpy as np

#: The errors that a corrupted or forged handle causes.
_MALFORMED = (TypeError, ValueError, OverflowError, AttributeError, LookupError)

Where = tuple[str, str, int]
"""The boot's number, the host's name, the namespace of process numbers."""

#: The mappings of this process, by the memory's name and whether it is writable. Each memory is mapped once.
mapped: weakref.WeakValueDictionary[tuple[str, bool], SharedMapping] = weakref.WeakValueDictionary()


#: The function that creates an array on a mapping, and the class that is pickled as a handle; set by `arrays`.
_arrays: tuple[Callable[..., np.ndarray], type[np.ndarray]] | None = None


def arrays_are(on: Callable[..., np.ndarray], shared_array: type[np.ndarray]) -> None:
    """Set how arrays are created; called once, by the module that defines the class."""
    global _arrays
    _arrays = on, shared_array


@cache
def where() -> Where:
    """Return the identity of the host and of its PID namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:  # as text its codec would be imported
            boot = file.read().decode().strip()
    except OSError:
        boot = ""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        space = 0
    return boot, os.uname().nodename, space


def made(mapping: SharedMapping, a: np.ndarray) -> tuple[Any, ...]:
    """Return the callable's arguments of a pickle: what :func:`arrive` needs."""
    words = mapping.handle()
    offset = a.__array_interface__["data"][0] - mapping.address if a.size else 0
    return where(), words, offset, a.shape, a.strides, a.dtype, bool(a.flags.writeable)


def arrive(place: Where, *what: Any) -> Any:
    """Return the array of a handle; in the process that sent it, one that can be sent again.

    Raises :exc:`SharedArrayError` or :exc:`MemoryError`. If that would end a process pool, an object is returned that
    raises it when used.
    """
    try:
        return _arrived(place, *what)
    except (SharedArrayError, MemoryError, *_MALFORMED) as error:
        if isinstance(error, _MALFORMED):
            error = SharedArrayError(f"this is not a valid handle of a shared array: {error}")
        if missing.would_end_a_pool():
            return missing.Missing(error)
        if isinstance(error, SharedArrayError) and callers.include("distributed.protocol.core"):
            raise LostOnTheWayError(str(error)) from None
        raise error from None


def _arrived(place: Where, words: Any, offset: int, shape: Any, strides: Any, dtype: Any, write: bool) -> np.ndarray:
    token, process = words[:2]
    _check_place(place)
    if dtype.hasobject:
        raise ValueError(f"an array of {dtype} would hold addresses, which are meaningless here")
    mapping = mapped.get((token, write)) or (None if write else mapped.get((token, True)))
    if mapping is None:
        mapping, why, code = SharedMapping.open(words, write)
        if mapping is None:
            raise _refused(process, words[3], why, code)
        mapped[token, write] = mapping
    else:
        _firsttouch.shared_arrived(words)
    assert _arrays is not None
    on, shared_array = _arrays
    array = on(mapping, offset, shape, strides, dtype)
    array.flags.writeable = write
    return array.view(shared_array) if process == os.getpid() else array


def _check_place(place: Where) -> None:
    (boot, host, space), (own_boot, own_host, own_space) = place, where()
    if (boot or host) != (own_boot or own_host):
        what = f"host {host!r}, and this is {own_host!r}" if host != own_host else f"{host!r} before it was rebooted"
        raise SharedArrayError(
            f"this shared array is in the memory of {what}: only processes of one host can share it; "
            "send numpy.array(a), a copy, to others"
        )
    if space != own_space:
        raise SharedArrayError(
            f"this shared array comes from another container of {host!r} (another PID namespace), whose processes "
            "cannot be seen from here: send numpy.array(a), a copy"
        )


_ONCE = "after the sender has released an array, a handle can be opened once, within 60 seconds"
#: The fate of an array that its sender no longer holds, and of the handle.
_DROPPED = {
    "dropped": f"no longer holds this shared array: {_ONCE}",
    "opened": f"no longer holds this shared array, and this handle has been opened already: {_ONCE}",
    "expired": f"no longer holds this shared array, and this handle was not opened in time: {_ONCE}",
    "file limit": "dropped this shared array, and released it before it was opened here: unopened arrays "
    "may take a quarter of its file descriptors, oldest released first; raise RLIMIT_NOFILE (ulimit -n) there",
    "memory limit": "dropped this shared array, and released it before it was opened here: unopened arrays "
    "may take a sixteenth of the memory and a quarter of what is free, oldest released first; send fewer at a time",
}


def _refused(process: int, nbytes: int, why: str, code: int) -> Exception:
    """Return what to raise if memory cannot be opened."""
    if not os.path.exists("/proc/self/fd"):
        return SharedArrayError("shared arrays are found by way of /proc, which is not mounted here")
    if why == "ended":
        return SharedArrayError(
            f"process {process}, which sent this shared array, has ended before it was opened here: a handle is good "
            "as long as its sender lives"
        )
    if why == "invalid":
        return SharedArrayError(
            f"this is not a valid handle of a shared array: its {nbytes} bytes do not fit the memory"
        )
    if why in _DROPPED:
        return SharedArrayError(f"process {process} {_DROPPED[why]}; keep the array until all others have opened it")
    if why == "not permitted":
        return SharedArrayError(
            f"process {process}, which sent this shared array, may not be looked into (/proc/{process}/fd): it belongs "
            "to another user, or protects itself"
        )
    if code == errno.ENOMEM:
        return MemoryError(
            f"{nbytes} bytes of shared memory cannot be mapped here: RLIMIT_AS (ulimit -v) leaves too little"
        )
    hint = ": each shared array takes a file number, see RLIMIT_NOFILE (ulimit -n)" if code == errno.EMFILE else ""
    return SharedArrayError(f"a shared array of process {process} cannot be opened: {os.strerror(code)}{hint}")

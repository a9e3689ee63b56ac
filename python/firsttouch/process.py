"""The whole process: install, uninstall, trim, and who allocates."""

from __future__ import annotations

import contextvars
import warnings

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal.reports import Failure
from firsttouch._internal.resolve import chosen
from firsttouch.custom import AllocatorLike


def install(allocator: AllocatorLike | None = None) -> None:
    """Lets ``allocator`` serve every array of the process from now on: all threads, those already running included.

    ``None`` is the process's own pool. Arrays made before stay as they are. May be called again, also with another
    allocator; the last one serves. NumPy has no promised way to do this: one pointer behind its default memory
    handler is swapped, after everything about it was checked.

    Raises :exc:`UnsupportedError` where NumPy's handler is not as expected, :exc:`TypeError` where ``allocator`` is
    not an allocator or its blocks could not be told from others by their address. Where the platform has no backend it
    warns, and NumPy goes on as before.
    """
    named = chosen(allocator, "install()")
    if not _firsttouch.BACKEND:
        message = "firsttouch has no backend for this platform: NumPy's arrays stay with NumPy's own allocator"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return
    _firsttouch.install(named)


def uninstall() -> None:
    """Stops serving new arrays. Living ones stay valid and are freed by who made them; never fails."""
    _firsttouch.uninstall()


def is_installed() -> bool:
    """Whether :func:`install` is in force; a :func:`use` around the caller does not count."""
    return _firsttouch.is_installed()


def serving() -> Allocator | None:
    """What :func:`install` put in force for every thread, without regard to a :func:`use` around the caller."""
    return contextvars.Context().run(_firsttouch.get_allocator) if is_installed() else None


def get_allocator(array: np.ndarray | None = None) -> Allocator | None:
    """The allocator that serves new arrays here, or the one that made ``array``'s memory.

    ``None`` where NumPy did not allocate the memory: a memory map, a buffer of another library.
    """
    return _firsttouch.get_allocator(array)


def trim(allocator: AllocatorLike | None = None) -> int:
    """Gives what ``allocator`` keeps back to the operating system now; bytes given back.

    ``None`` is the installed one, or the process's own pool.
    """
    return _firsttouch.trim(chosen(allocator, "trim()"))


def last_failure() -> Failure | None:
    """Why the last request failed that firsttouch could not serve; ``None`` if none ever did."""
    found = _firsttouch.last_failure()
    return None if found is None else Failure(*found)

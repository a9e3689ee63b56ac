"""The zero-page trap: reading memory that does not exist is fast, and measures nothing."""

from __future__ import annotations

import os
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from _firsttouch_start import units
from firsttouch._firsttouch import UnsupportedError
from firsttouch.inspection.page_map import states
from firsttouch.inspection.states import PageState

if TYPE_CHECKING:
    import numpy.typing as npt


class NotBackedWarning(UserWarning):
    """Pages that did not exist were read in a :class:`check_backed` block: it measured the zero page.

    See Also
    --------
    firsttouch.check_backed : Gives this warning.

    """


def is_backed(a: np.ndarray) -> bool:
    """Return whether every page of an array exists and none is the kernel's shared zero page.

    Parameters
    ----------
    a : ndarray
        Array to look at.

    Returns
    -------
    bool
        ``True`` for an empty array. Swapped-out pages exist, and so do pages of a memory map that are in the page
        cache.

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.
    UnsupportedError
        If the kernel does not tell.

    See Also
    --------
    check_backed : Check what a measurement reads.
    touch : Fault the pages in.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> ft.is_backed(a)
    False
    >>> a.fill(1)
    >>> ft.is_backed(a)
    True

    """
    found = _states(a, "is_backed")
    if bool(((found == PageState.ABSENT) | (found == PageState.ZERO)).any()):
        return False
    if bool((found >= PageState.PRESENT).any()):
        raise UnsupportedError(
            "is_backed() is not available here: the kernel does not tell memory from the zero page"
            " (neither PAGEMAP_SCAN nor move_pages works; ft.inspect(a).sources has more)"
        )
    return True


class check_backed:
    """Warn if a measurement reads pages of arrays that do not exist.

    Memory that was never written has no pages of its own: every read comes from the kernel's shared zero page, which
    stays in the nearest cache, and measures nothing.

    Parameters
    ----------
    *arrays : ndarray
        Arrays that the block reads.

    Attributes
    ----------
    unbacked : list of int
        After the block, for each array: bytes that were read without memory behind them.
    first_touched : list of int
        After the block, for each array: bytes that were faulted in by a write.

    Raises
    ------
    TypeError
        If an argument is not a NumPy array.

    Warns
    -----
    firsttouch.inspection.NotBackedWarning
        If any array is `unbacked`, unless an exception leaves the block.

    Notes
    -----
    Residency is compared before and after the block. Pages that were written first are no trap for reads, but their
    page faults are part of what was measured; `first_touched` counts them, without a warning.

    Examples
    --------
    >>> b = ft.pages().zeros(10**6)
    >>> b.fill(1)
    >>> with ft.check_backed(b) as check:
    ...     total = b.sum()
    >>> check.unbacked
    [0]

    """

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = arrays
        self.unbacked: list[int] = []
        self.first_touched: list[int] = []
        self._before: list[npt.NDArray[np.uint8]] = []
        for array in arrays:
            _states(array, "check_backed")

    def __enter__(self) -> Self:
        self._before = [_states(array, "check_backed") for array in self.arrays]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        page = _page_size()
        self.unbacked, self.first_touched = [], []
        for array, before in zip(self.arrays, self._before, strict=True):
            after = _states(array, "check_backed")
            if before.shape != after.shape:  # resized meanwhile: another piece of memory
                before = after * 0
            missing = (before == PageState.ABSENT) | (before == PageState.ZERO)
            made = (after == PageState.SMALL) | (after == PageState.HUGE) | (after == PageState.REAL)
            self.unbacked.append(int((after == PageState.ZERO).sum()) * page)
            self.first_touched.append(int((missing & made).sum()) * page)
        if kind is None and any(self.unbacked):
            warnings.warn(self._words(), NotBackedWarning, stacklevel=2)

    def _words(self) -> str:
        of = len(self.arrays)
        said = [
            f"{units.size(size)} of {f'array {at + 1} of {of}' if of > 1 else 'the array'}"
            f" ({array.dtype}, shape {array.shape})"
            for at, (array, size) in enumerate(zip(self.arrays, self.unbacked, strict=True))
            if size
        ]
        return (
            f"read without memory behind it: {', '.join(said)}. These pages were never written: every read came from "
            "the kernel's shared zero page, which stays in the nearest cache. Write to the array before measuring, "
            "as with a.fill(1), or give it pages of its own with firsttouch.touch(a)"
        )


def _states(array: np.ndarray, function: str) -> npt.NDArray[np.uint8]:
    return states(array, function)


def _page_size() -> int:
    # Not mmap.PAGESIZE: a program may have a module of that name, which must not be run at the import.
    return os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

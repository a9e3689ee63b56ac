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
    """Pages that did not exist were read in a :func:`check_backed` block: what it measured was the zero page."""


def is_backed(a: np.ndarray) -> bool:
    """Whether every page of ``a`` exists: none is not there yet, none is the kernel's shared zero page.

    Swapped pages exist, and so do those of a memory map that are in the page cache. An empty array has no page that
    could be missing. No page is touched.

    Raises :exc:`TypeError` where ``a`` is not a NumPy array, :exc:`UnsupportedError` where the kernel doesn't tell.
    """
    found = _states(a, "is_backed")
    if bool(((found == PageState.ABSENT) | (found == PageState.ZERO)).any()):
        return False
    if bool((found >= PageState.PRESENT).any()):
        raise UnsupportedError(
            "is_backed() can't know it here: the kernel does not tell memory from the zero page"
            " (neither PAGEMAP_SCAN nor move_pages works; ft.inspect(a).sources has more)"
        )
    return True


class check_backed:
    """Around a measurement: warns with :exc:`NotBackedWarning` if it read pages of ``arrays`` that did not exist.

    Memory that was never written has no pages: reading it reads the kernel's zero page again and again, from the
    nearest cache. Residency is compared before and after: pages that became the shared zero page were read; pages that
    are it before and after were read, too, or would have been. Pages that were written first are no trap for reads,
    but their first touch was part of the measurement: ``first_touched`` counts them, without a warning.

    After the block ``unbacked`` has the bytes that were read without memory behind them, ``first_touched`` those that
    were made real, each a list with one number for each array. No warning is given while an exception leaves the block.

    Raises :exc:`TypeError` where something is not a NumPy array.

    >>> with ft.check_backed(b, c):
    ...     np.add(b, c, out=a)
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

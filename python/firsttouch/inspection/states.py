"""The states that a page can be in, and who can tell."""

from __future__ import annotations

from enum import IntEnum


class PageState(IntEnum):
    """What stands behind a page."""

    ABSENT = 0
    """Not there yet: the first touch makes it."""
    ZERO = 1
    """The kernel's zero page, which all share: it was read before it was written."""
    SMALL = 2
    """Memory, mapped by a base page."""
    HUGE = 3
    """Memory, mapped by a huge page."""
    SWAPPED = 4
    """In swap."""
    CACHED = 5
    """In the page cache (a file, shared memory), but this process has not touched it."""
    REAL = 6
    """Memory; whether by a small or a huge page isn't known here."""
    PRESENT = 7
    """Memory or the shared zero page; which of them isn't known here."""
    UNKNOWN = 8
    """Nothing is known: no source works here."""


class PageSource(IntEnum):
    """Who said what a page is."""

    NOBODY = 0
    """No source works here."""
    PAGEMAP_SCAN = 1
    """The ioctl of that name (Linux 6.7)."""
    PAGEMAP = 2
    """The entries of ``/proc/self/pagemap``."""
    MOVE_PAGES = 3
    """The system call, which names the node of a page that is real."""
    MINCORE = 4
    """The system call."""
    SMAPS = 5
    """``/proc/self/smaps``, which counts huge pages in whole mappings."""

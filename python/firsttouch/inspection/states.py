"""The states that a page can be in, and the sources of that knowledge."""

from __future__ import annotations

from enum import IntEnum


class PageState(IntEnum):
    """State of a page.

    See Also
    --------
    firsttouch.pagemap : Returns one for each page.

    """

    ABSENT = 0
    """Does not exist yet: the first touch faults it in."""
    ZERO = 1
    """The kernel's shared zero page: it was read before it was written."""
    SMALL = 2
    """Memory, mapped by a base page."""
    HUGE = 3
    """Memory, mapped by a huge page."""
    SWAPPED = 4
    """In swap."""
    CACHED = 5
    """In the page cache (a file, shared memory), but not touched by this process."""
    REAL = 6
    """Memory, mapped by a base page or a huge page; which is not known."""
    PRESENT = 7
    """Memory or the shared zero page; which is not known."""
    UNKNOWN = 8
    """Not known: no source works here."""


class PageSource(IntEnum):
    """Source of a page's state.

    See Also
    --------
    PageMap.sources : One for each page.

    """

    NOBODY = 0
    """No source works here."""
    PAGEMAP_SCAN = 1
    """The ioctl of that name (Linux 6.7)."""
    PAGEMAP = 2
    """The entries of ``/proc/self/pagemap``."""
    MOVE_PAGES = 3
    """The system call, which also tells the node."""
    MINCORE = 4
    """The system call."""
    SMAPS = 5
    """``/proc/self/smaps``, which counts huge pages in whole mappings."""

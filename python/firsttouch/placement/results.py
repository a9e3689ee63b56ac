"""Results of placement functions, and receipts."""

from typing import NamedTuple


class Touched(NamedTuple):
    """Result of :func:`firsttouch.touch`.

    See Also
    --------
    firsttouch.touch : Returns it.

    """

    nbytes: int
    """Bytes touched."""
    threads: int
    """Number of threads that touched them."""
    by_kernel: bool
    """Whether the kernel populated the pages; otherwise each page was written or read."""


class Collapsed(NamedTuple):
    """Result of :func:`firsttouch.collapse`.

    See Also
    --------
    firsttouch.collapse : Returns it.

    """

    huge: int
    """Bytes that are on huge pages now."""
    why_not: str | None
    """Why some are not, or ``None``."""


class Migrated(NamedTuple):
    """Result of :func:`firsttouch.migrate`, in bytes of whole pages.

    See Also
    --------
    firsttouch.migrate : Returns it.

    """

    moved: int
    """Moved to another node."""
    stayed: int
    """Already in place."""
    absent: int
    """Not faulted in yet, or the shared zero page: nothing to move."""
    failed: int
    """Could not be moved."""
    why_not: str | None
    """Why some could not be moved, or ``None``."""


class Receipt(NamedTuple):
    """What was requested for an array's memory, and what was granted.

    See Also
    --------
    firsttouch.receipt : Returns it.

    """

    nbytes: int
    """Bytes requested; of a block that a pool recycles, by its first request."""
    mapped: int
    """Bytes mapped, in whole pages."""
    asked: str
    """Arguments of :func:`firsttouch.pages`."""
    huge: str | None
    """Page size granted; ``"thp"`` is a hint that the kernel follows page by page."""
    numa: str | None
    """Policy granted."""
    populated: bool
    """Whether all pages were faulted in."""
    threads: int
    """Number of threads that faulted them in."""
    locked: bool
    """Whether the pages are locked in memory."""
    why_not: tuple[str, ...]
    """A sentence for each request that was not granted."""


class ReceiptSum(NamedTuple):
    """One line of :func:`firsttouch.receipts`.

    See Also
    --------
    firsttouch.receipts : Returns a list of them.

    """

    wish: str
    """Argument of :func:`firsttouch.pages` that was requested."""
    why_not: str | None
    """Why it was not granted, or ``None`` if it was."""
    blocks: int
    """Number of blocks."""
    nbytes: int
    """Bytes of these blocks."""

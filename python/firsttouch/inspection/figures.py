"""The figures of an inspection, which each name their source."""

from __future__ import annotations

from dataclasses import dataclass

from firsttouch._firsttouch import Allocator
from firsttouch.placement.arrays import Receipt


@dataclass(frozen=True, repr=False)
class Figures:
    """What :class:`firsttouch.Inspection` holds."""

    dtype: str
    """The elements' type."""
    shape: tuple[int, ...]
    """As the array's."""
    nbytes: int
    """Bytes of all elements."""
    address: int
    """Of the first element."""
    alignment: int
    """The largest power of two that divides the address; 0 for an address of 0."""
    offset: int
    """Bytes from the beginning of its page to the address."""
    page_size: int
    """Bytes of a base page."""
    pages: int
    """Number of base pages that elements lie on."""
    allocator: Allocator | None
    """Who made the memory; ``None`` where NumPy did not allocate it (a memory map, another library's buffer)."""
    shared: bool
    """Whether processes share it: who writes to it writes to the same memory (:func:`firsttouch.shared`, a file)."""
    receipt: Receipt | None
    """What was asked for and granted; ``None`` where the memory does not come from placed pages."""
    absent: int | None
    """Not there yet: the first touch makes them."""
    zero_page: int | None
    """The kernel's zero page, which all share: read before they were written."""
    small: int | None
    """Memory, mapped by base pages."""
    huge: int | None
    """Memory, mapped by huge pages."""
    real: int | None
    """Memory of the array's own: ``small`` and ``huge`` together, known also where their sizes are not."""
    swapped: int | None
    """In swap."""
    cached: int | None
    """In the page cache (a file, shared memory), but not touched by this process."""
    locked: int | None
    """In memory and locked there (mlock); counted above, too."""
    nodes: dict[int, int] | None
    """Bytes of real pages on each NUMA node that has any; -1 is those of which the kernel names none just now."""
    sources: dict[str, str]
    """For each figure from ``absent`` to ``nodes``: who told it."""

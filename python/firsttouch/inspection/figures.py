"""The figures of an inspection, which each name their source."""

from typing import NamedTuple

from firsttouch._firsttouch import Allocator
from firsttouch.placement.results import Receipt


class Figures(NamedTuple):
    """Fields of :class:`firsttouch.inspection.Inspection`."""

    dtype: str
    """Data type of the elements."""
    shape: tuple[int, ...]
    """Shape of the array."""
    nbytes: int
    """Bytes of all elements."""
    address: int
    """Address of the first element."""
    alignment: int
    """Largest power of two that divides the address; 0 for an address of 0."""
    offset: int
    """Bytes from the start of the page to the address."""
    page_size: int
    """Bytes per base page."""
    pages: int
    """Number of base pages that elements lie on."""
    allocator: Allocator | None
    """Allocator that made the memory; ``None`` if NumPy did not allocate it."""
    shared: bool
    """Whether the memory is shared between processes (:func:`firsttouch.shared`, a file)."""
    receipt: Receipt | None
    """What was requested and granted; ``None`` if the memory does not come from placed pages."""
    absent: int | None
    """Bytes of pages that do not exist yet."""
    zero_page: int | None
    """Bytes of pages that are the kernel's shared zero page."""
    small: int | None
    """Bytes of memory mapped by base pages."""
    huge: int | None
    """Bytes of memory mapped by huge pages."""
    real: int | None
    """Bytes of memory in all: `small` and `huge` together, known even where the page sizes are not."""
    swapped: int | None
    """Bytes in swap."""
    cached: int | None
    """Bytes in the page cache, but not touched by this process."""
    locked: int | None
    """Bytes locked in memory (mlock); also counted above."""
    nodes: dict[int, int] | None
    """Bytes of memory on each NUMA node that has any; -1 stands for pages whose node the kernel does not tell."""
    sources: dict[str, str]
    """Source of each figure from `absent` to `nodes`."""

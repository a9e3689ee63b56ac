"""Allocators: the sources that obtain memory, and the adaptors that stand on another allocator.

Each function returns an :class:`Allocator`, whose ``repr`` is the expression that makes it. The same expression, as
text, is accepted wherever an allocator is.
"""

from firsttouch._firsttouch import Allocator
from firsttouch.allocators.adaptors import filled, guarded, limited, pool, tracked
from firsttouch.allocators.sources import (
    aligned,
    calloc,
    from_functions,
    jemalloc,
    malloc,
    mimalloc,
    numpy_default,
    pages,
)
from firsttouch.placement.pages import numa

__all__ = [
    "Allocator",
    "aligned",
    "calloc",
    "filled",
    "from_functions",
    "guarded",
    "jemalloc",
    "limited",
    "malloc",
    "mimalloc",
    "numa",
    "numpy_default",
    "pages",
    "pool",
    "tracked",
]

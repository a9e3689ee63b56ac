"""The functions that make allocators. Written from `SPECS` by ``python -m tests.expressions.stub``."""

from typing import Literal

from firsttouch._firsttouch import Allocator
from firsttouch._internal.arguments import Huge, Policy, Size
from firsttouch.custom import AllocatorLike

def aligned(alignment: Size) -> Allocator:
    """Return an allocator of lazily zeroed memory at multiples of `alignment`."""

def calloc() -> Allocator:
    """Return an allocator on the C library's ``calloc``: every array reads zero, ``empty`` included."""

def filled(
    upstream: AllocatorLike | None = None,
    *,
    on_allocate: int | None = 255,
    on_free: int | None = None,
) -> Allocator:
    """Return an allocator that fills memory with a byte, which exposes reads of uninitialized or freed memory."""

def guarded(*, side: Literal["after", "before"] = "after", keep: Size = 0) -> Allocator:
    """Return an allocator that places each array at an inaccessible page, so that an overrun stops the process."""

def jemalloc() -> Allocator:
    """Return the process's jemalloc, the allocator of FreeBSD and Meta, built in."""

def limited(upstream: AllocatorLike | None = None, budget: Size = "auto", *, at_most: Size | None = None) -> Allocator:
    """Return an allocator that raises :exc:`MemoryError` beyond a budget."""

def malloc() -> Allocator:
    """Return an allocator on the C library's ``malloc``, aligned to 64 bytes."""

def mimalloc() -> Allocator:
    """Return the process's mimalloc, Microsoft's allocator, built in."""

def numa(
    numa: Policy,
    *,
    huge: Huge = False,
    populate: bool | int = False,
    lock: bool = False,
    strict: bool = False,
) -> Allocator:
    """Return an allocator of fresh pages from a NUMA node, or from where a policy says."""

def pages(
    huge: Huge = False,
    *,
    populate: bool | int = False,
    lock: bool = False,
    numa: Policy | None = None,
    strict: bool = False,
) -> Allocator:
    """Return an allocator that maps fresh pages for every array and unmaps them when the array is freed."""

def pool(
    upstream: AllocatorLike | None = None,
    *,
    max_idle: Size | None = None,
    decay: float | None = 1.0,
) -> Allocator:
    """Return a pool, which keeps freed blocks and reuses the most recently freed."""

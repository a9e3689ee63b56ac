"""`numa=` of allocators that recycle memory: the pages that pools and scratch buffers stand on."""

from __future__ import annotations

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal.resolve import checked
from firsttouch.placement.policies import PolicyLike, plain, policy


def buffer_upstream(given: object, numa: PolicyLike | None) -> Allocator | None:
    """Return the upstream of a scratch buffer; buffers on the same nodes share one warm pool."""
    if numa is None or given is not None:
        return _firsttouch.recycled_upstream("ScratchBuffer()", given, plain(numa))
    return _shared("ScratchBuffer()", numa)


def storage(given: object, numa: PolicyLike) -> Allocator:
    """Return the pool that a fixed buffer's memory comes from if it is not given."""
    if given is not None and not isinstance(given, str) and not _is_number(given):
        raise ValueError(
            f"FixedBuffer() got memory of its own ({type(given).__name__}) and numa={numa!r}: give a size with numa=, "
            f"or move the memory first with firsttouch.migrate(array, {numa!r})"
        )
    return _shared("FixedBuffer()", numa)


def _is_number(given: object) -> bool:
    return hasattr(given, "__index__") and not hasattr(given, "__len__")  # arrays have both


def _shared(caller: str, numa: PolicyLike) -> Allocator:
    _firsttouch.recycled_upstream(caller, None, plain(numa))  # what is wrong is said of the caller, not of the pool
    return checked(f"pool(numa={str(policy('numa', numa))!r})", caller)

"""`numa=` of allocators that recycle memory: the pages that pools and scratch buffers stand on."""

from __future__ import annotations

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal.resolve import checked
from firsttouch.placement.pages import placed
from firsttouch.placement.policies import PolicyLike, policy


def upstream(caller: str, given: object, numa: PolicyLike | None) -> Allocator | None:
    """Return the upstream of ``caller``: what is ``given``, huge pages by ``numa``, or ``None`` for the default.

    Raises :exc:`ValueError` for both at once, for slabs, and for what is no policy of this machine.
    """
    if numa is None:
        return None if given is None else _without_slabs(caller, checked(given, caller))
    chosen = str(policy("numa", numa))
    if given is not None:
        raise ValueError(
            f"{caller} got upstream={given!r:.80} and numa={numa!r}: give one of them, or an upstream that says where, "
            f"like pages(huge='2M', numa={chosen!r})"
        )
    return _without_slabs(caller, placed("thp", numa=chosen))


def buffer_upstream(given: object, numa: PolicyLike | None) -> Allocator | None:
    """Return the upstream of a scratch buffer; buffers on the same nodes share one warm pool."""
    if numa is None or given is not None:
        return upstream("ScratchBuffer()", given, numa)
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
    return hasattr(given, "__index__") and not hasattr(given, "__array_interface__")  # arrays have both


def _shared(caller: str, numa: PolicyLike) -> Allocator:
    chosen = str(policy("numa", numa))
    _refuse_slabs(caller, chosen)
    return checked(f"pool(numa={chosen!r})", caller)


def _without_slabs(caller: str, found: Allocator) -> Allocator:
    _refuse_slabs(caller, _firsttouch.policy_of(found))
    return found


def _refuse_slabs(caller: str, chosen: str | None) -> None:
    if chosen is not None and chosen.startswith("blocked"):
        raise ValueError(
            f"{caller} can't stand on numa={chosen!r}: its blocks are used again for other arrays, whose slabs would "
            f"lie elsewhere; give single arrays pages(numa={chosen!r}), or {caller} numa='interleave:all'"
        )

"""Which allocator is meant: the one that is named, or the process's own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from firsttouch._firsttouch import Allocator
    from firsttouch.own import AllocatorLike


def chosen(allocator: AllocatorLike | None, caller: str) -> Allocator | None:
    """The one that is named; ``None`` is the process's own."""
    if allocator is None:
        return None
    from firsttouch.checking import checked  # only for who names one: most programs take the process's own pool

    return checked(allocator, caller)

"""What became of this process: whether the pool is in place, and if not, why not."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

installed = False
reason: str | None = None
#: The allocator that was made for the options given; None is the process's own pool.
allocator: "Any" = None
#: The native module, once it is loaded.
native: "Any" = None
#: Whether that pool is the preloaded library's, which serves all large blocks from it.
shared = False

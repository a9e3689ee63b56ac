"""Whether the pool is installed in this process and, if not, why not."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

installed = False
reason: str | None = None
#: The allocator created from the options; None stands for the process's own pool.
allocator: "Any" = None
#: The native module, once it is loaded.
native: "Any" = None
#: Whether that pool is the preloaded library's, which serves all large blocks from it.
shared = False

"""Reports arrays that a decorated function leaves in its scope, apart from its result."""

from collections.abc import Callable
from typing import Any, Literal

from firsttouch.buffers import aliasing, copying, escapes

Listed = tuple[int, int, str | None]
"""A block that is still live: its address, its size, and the line that requested it."""


def report(
    function: Callable[..., Any],
    survivors: list[Listed],
    escape: Literal["warn", "raise"],
    buffer: str,
    returned: Any,
) -> None:
    """Warn of survivors that are not in `returned`, or raise :exc:`firsttouch.buffers.EscapeError`."""
    extents = [aliasing.extent(array) for array in copying.arrays(returned)]
    left = [
        (address, nbytes, None, None, site)
        for address, nbytes, site in survivors
        if not any(address <= low < address + max(1, nbytes) for low, _ in extents)
    ]
    if left:
        name = getattr(function, "__qualname__", type(function).__name__)
        escapes.report(name, left, escape, buffer)


def note(error: BaseException, survivors: list[Listed]) -> None:
    """Add a note to an exception about what it keeps alive."""
    escapes.note(error, [(address, nbytes, None, None, site) for address, nbytes, site in survivors])

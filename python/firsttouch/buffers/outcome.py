"""Reports arrays that a decorated function leaves in its scope, apart from its result."""

from collections.abc import Callable
from typing import Any, Literal

from firsttouch.buffers import escapes

Listed = tuple[int, int, str | None]
"""A block that is still live: its address, its size, and the line that requested it."""


def report(
    function: Callable[..., Any], survivors: list[Listed], escape: Literal["warn", "raise"], buffer: str
) -> None:
    """Warn of survivors, or raise :exc:`firsttouch.buffers.EscapeError`."""
    left = [(address, nbytes, None, None, site) for address, nbytes, site in survivors]
    if left:
        name = getattr(function, "__qualname__", type(function).__name__)
        escapes.report(name, left, escape, buffer)


def note(error: BaseException, survivors: list[Listed]) -> None:
    """Add a note to an exception about what it keeps alive."""
    escapes.note(error, [(address, nbytes, None, None, site) for address, nbytes, site in survivors])

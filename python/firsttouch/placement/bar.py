"""A progress bar on standard error for long prefaults."""

import sys
from collections.abc import Callable

_WIDTH = 40


def bar(nbytes: int) -> Callable[[int], None]:
    """Return a function that draws how many of ``nbytes`` are done; it is silent where nobody can be written to."""
    complete = False

    def draw(done: int) -> None:
        nonlocal complete
        if complete:  # told after its last piece, and at its end
            return
        complete = done >= nbytes
        part = min(done / nbytes, 1.0)
        end = "\n" if complete else ""
        try:
            sys.stderr.write(f"\rtouch [{'#' * int(part * _WIDTH):{_WIDTH}}] {part:4.0%}{end}")
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):  # closed, a pipe without a reader, or missing (pythonw)
            pass

    return draw

"""NumPy's MemoryError, extended by the available memory and the limit that was exceeded."""

import math
from typing import Any

from firsttouch import _firsttouch

try:
    from numpy._core._exceptions import _ArrayMemoryError as _OfNumPy
except ImportError:  # a private name of NumPy's
    _OfNumPy = MemoryError  # type: ignore[misc, assignment]

Failure = tuple[int, str, str]


class ArrayMemoryError(_OfNumPy):
    """NumPy's error, with the reason."""

    def __init__(self, shape: Any, dtype: Any, reason: str) -> None:
        super().__init__(shape, dtype)
        self.reason = reason
        """The requested size, the available memory and the limit that was exceeded."""

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.reason}"


def explained(error: MemoryError, before: Failure | None) -> MemoryError:
    """Return the error with the reason of the last failure, if that is a new one; `before` was the last one before."""
    found = _firsttouch.last_failure()
    if found is None or (found == before and found[0] != _asked(error)):
        return error
    vars(error).pop("__notes__", None)  # the same reason
    if type(error) is _OfNumPy and _asked(error) is not None:
        return ArrayMemoryError(*error.args, found[2])  # type: ignore[call-arg]
    return MemoryError(f"{str(error) or 'no memory for the array'}: {found[2]}")


def add_reason(error: MemoryError) -> None:
    """Add the reason of the last failure to NumPy's error as a note, if that was this one's and it has none yet."""
    found = _firsttouch.last_failure()
    if found is not None and found[0] == _asked(error) and found[2] not in getattr(error, "__notes__", ()):
        error.add_note(found[2])


def _asked(error: MemoryError) -> int | None:
    """Return the bytes that NumPy requested, which its error keeps as shape and type."""
    try:
        shape, dtype = error.args
        return int(max(1, math.prod(shape)) * dtype.itemsize)
    except (AttributeError, TypeError, ValueError):
        return None

"""Adds to NumPy's MemoryError why a request was refused.

A refusal by a budget becomes a note, which tracebacks show below the message; what an allocator written in Python
raised becomes the error's cause. NumPy replaces whatever error an allocator raises by its own, and makes that from the
class that is changed here.
"""

from _firsttouch_start import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add_reasons() -> None:
    """Let NumPy's error explain refusals, from now on and in the whole process."""
    try:
        from numpy._core import _exceptions
    except ImportError:
        return  # a private name of NumPy's
    kind: Any = _exceptions._ArrayMemoryError
    if hasattr(kind, "_firsttouch_reasons"):
        return
    module, begin = native.load(), kind.__init__

    def explain(self: "Any", *arguments: "Any") -> None:
        begin(self, *arguments)
        found = module.last_failure()
        if type(self) is not kind or found is None or found[0] != _asked(self):
            return
        if found[1] == "limited":
            self.add_note(found[2])
        elif (raised := module.take_error()) is not None:
            self.__cause__ = raised

    kind.__init__ = explain
    kind._firsttouch_reasons = True


def _asked(error: "Any") -> int:
    """Return the bytes that NumPy requested."""
    nbytes = error.dtype.itemsize
    for length in error.shape:
        nbytes *= max(length, 1)
    return int(nbytes)

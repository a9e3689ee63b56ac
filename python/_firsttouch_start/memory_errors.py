"""Adds to NumPy's MemoryError why a request was refused, as a note, which tracebacks show below the message.

NumPy replaces whatever error an allocator raises by its own, and makes that from the class that is changed here.
"""

from _firsttouch_start import native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add_reasons() -> None:
    """Let NumPy's error explain refusals by a budget, from now on and in the whole process."""
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
        if type(self) is kind and found is not None and found[1] == "limited" and found[0] == _asked(self):
            self.add_note(found[2])

    kind.__init__ = explain
    kind._firsttouch_reasons = True


def _asked(error: "Any") -> int:
    """Return the bytes that NumPy requested."""
    nbytes = error.dtype.itemsize
    for length in error.shape:
        nbytes *= max(length, 1)
    return int(nbytes)

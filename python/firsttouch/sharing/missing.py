"""What arrives in a pool of processes in the place of a shared array that can't be had.

An error while a task is unpickled ends the worker of a pool, whose caller may wait for ever (``multiprocessing.Pool``).
So the error waits for the first use, which is in the task, and comes back as the task's own.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

#: Where pools unpickle tasks and results, each in a loop that an error would end.
_LOOPS = {
    ("pool", "worker"),
    ("pool", "_handle_results"),
    ("process", "_process_worker"),
    ("process", "wait_result_broken_or_wakeup"),
    ("process_executor", "_process_worker"),
    ("process_executor", "wait_result_broken_or_wakeup"),
}
#: Whose frames may stand between: where there are others, a task unpickles, and the error is its own already.
_PASSED = ("firsttouch.", "multiprocessing.", "concurrent.futures.", "joblib.externals.loky.", "loky.", "pickle.")

_SPECIAL = """
array array_ufunc array_function reduce_ex buffer copy deepcopy format str call enter exit hash eq ne lt le gt ge
len iter next getitem setitem delitem contains bool int float complex index neg pos abs invert round
add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor
radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor
iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor
"""


class Missing:
    """Raise at every use what could not be raised on arrival."""

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> NoReturn:
        raise self._error.with_traceback(None)

    def __repr__(self) -> str:
        return f"<a shared array that could not be had: {self._error}>"


def _raise(self: Missing, *_given: object, **_named: object) -> NoReturn:
    raise self._error.with_traceback(None)


for _name in _SPECIAL.split():
    setattr(Missing, f"__{_name}__", _raise)


def would_end_a_pool() -> bool:
    """Return whether the caller is unpickling for a pool's own loop."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if (module.rpartition(".")[2], frame.f_code.co_name) in _LOOPS:
            return True
        if not f"{module}.".startswith(_PASSED):
            return False
        frame = frame.f_back
    return False

"""A placeholder for a shared array that cannot be opened in a worker of a process pool.

An error while a task is unpickled ends the worker, and the caller may wait forever (``multiprocessing.Pool``). So the
error is raised at the first use, inside the task, and is reported as the task's own.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

#: Functions of pools that unpickle tasks and results, in loops that an error would end.
_LOOPS = {
    ("pool", "worker"),
    ("pool", "_handle_results"),
    ("process", "_process_worker"),
    ("process", "wait_result_broken_or_wakeup"),
    ("process_executor", "_process_worker"),
    ("process_executor", "wait_result_broken_or_wakeup"),
}
#: Modules whose frames may be in between. With any other, the task itself unpickles, and the error is its own.
_PASSED = ("firsttouch.", "multiprocessing.", "concurrent.futures.", "joblib.externals.loky.", "loky.", "pickle.")

_SPECIAL = """
array array_ufunc array_function reduce_ex buffer copy deepcopy format str call enter exit hash eq ne lt le gt ge
len iter next getitem setitem delitem contains bool int float complex index neg pos abs invert round
add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor
radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor
iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor
"""


class Missing:
    """Raises, at every use, the error of opening a shared array."""

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> NoReturn:
        raise self._error.with_traceback(None)

    def __repr__(self) -> str:
        return f"<a shared array that could not be opened: {self._error}>"


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

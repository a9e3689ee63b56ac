"""What is done around a fork: modules are not left half loaded, and the caretaker's thread may come back."""

import os
from _thread import RLock

from firsttouch import _firsttouch

#: Held by who loads a module late: a child that finds one half loaded by another thread would wait for it for ever.
loading = RLock()

_PATIENCE = 5.0  # seconds; then a fork goes on all the same
_held = False


def _before() -> None:
    global _held
    _held = loading.acquire(timeout=_PATIENCE)


def _after() -> None:
    if _held:
        loading.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
    # Functions that run Python can't be called while the interpreter forks: what is idle over them goes back before.
    os.register_at_fork(before=_firsttouch.cool)
    # The caretaker's thread ends before a fork. It may come back with the next line of Python, so this stands last.
    os.register_at_fork(after_in_parent=_firsttouch.resume_later, after_in_child=_firsttouch.resume_later)

"""The allocator of a worker's process. Workers that are threads of one process share it, with whoever else is there."""

from __future__ import annotations

import threading

import firsttouch
from firsttouch import process
from firsttouch._firsttouch import Allocator

_lock = threading.Lock()
_served: dict[object, str | None] = {}
_before: Allocator | None = None


def begin(owner: object, expression: str | None) -> None:
    """Installs what ``expression`` makes, ``None`` the process's own pool, until every owner has ended.

    Raises :exc:`RuntimeError` where another owner has installed something else, and what :func:`firsttouch.install`
    raises.
    """
    global _before
    with _lock:
        for other in _served.values():
            if other != expression:
                raise RuntimeError(
                    f"another worker in its process is served by {other or 'pool()'} already, and a process has one "
                    f"allocator: it can't have {expression or 'pool()'} too"
                )
        if not _served:
            before = process.serving()
            firsttouch.install(expression)
            _before = before
        _served[owner] = expression


def end(owner: object) -> None:
    """After the last owner the process has again what it had before the first."""
    with _lock:
        if owner not in _served:
            return
        del _served[owner]
        if _served:
            return
        if _before is None:
            firsttouch.uninstall()
        else:
            firsttouch.install(_before)

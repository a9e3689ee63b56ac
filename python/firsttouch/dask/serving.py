"""The allocator of a worker's process, which workers that are threads of one process share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import firsttouch
from firsttouch import process
from firsttouch._firsttouch import Allocator

if TYPE_CHECKING:
    from distributed import Worker

_lock = threading.Lock()
_served: dict[Worker, tuple[str | None, str]] = {}
_before: Allocator | None = None


def begin(owner: Worker, expression: str | None, asked: str) -> None:
    """Install the allocator of ``expression`` (``None``: the process's own pool) until the last owner has ended.

    ``asked`` identifies the plugin's arguments. New arguments replace those of the other workers of the same cluster,
    which are about to receive them as well.

    Raises :exc:`RuntimeError` if another owner has installed a different allocator, and whatever
    :func:`firsttouch.install` raises.
    """
    global _before
    with _lock:
        others = [(other, *had) for other, had in _served.items() if had[0] != expression]
        for other, had, was_asked in others:
            if was_asked == asked or other.scheduler.address != owner.scheduler.address:
                raise RuntimeError(
                    f"another worker in its process is served by {had or 'pool()'} already, and a process has one "
                    f"allocator: it cannot also have {expression or 'pool()'}"
                )
        if others:
            firsttouch.install(expression or "process")
        elif not _served:
            before = process.serving()
            firsttouch.install(expression or "process")
            _before = before
        for other in (owner, *(other for other, _, _ in others)):
            _served[other] = expression, asked


def end(owner: Worker) -> None:
    """End an owner's use; after the last one, restore the allocator that was installed before the first."""
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

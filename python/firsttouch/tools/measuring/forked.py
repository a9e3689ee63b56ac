"""Runs a function in a forked child, so that it has no effect on this process's heap."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable

from firsttouch.tools.measuring.starter import end_with


def forked(function: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Call it in a child process. Raises :exc:`RuntimeError` with the child's traceback, or with its wait status."""
    read, write = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            end_with(parent)
            message = {"value": function()}
        except BaseException:  # none of the parent's code may continue here
            message = {"error": traceback.format_exc()}  # type: ignore[dict-item]
        with os.fdopen(write, "w") as pipe:
            json.dump(message, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not text:
        raise RuntimeError(f"a forked measurement ended without an answer (wait status {status})")
    answer: dict[str, dict[str, float]] = json.loads(text)
    if "error" in answer:
        raise RuntimeError(f"in a forked measurement:\n{answer['error']}")
    return answer["value"]

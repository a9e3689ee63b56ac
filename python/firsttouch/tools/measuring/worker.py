"""A contender's process: replies to each JSON line on standard input with one on standard output."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import TextIO

import numpy as np

Reply = dict[str, float]


def answer(line: str) -> Reply:
    """Call the function that the line names."""
    request = json.loads(line)
    sys.path[:] = request["path"]
    function = getattr(importlib.import_module(request["module"]), request["function"])
    reply: Reply = function(**request["arguments"])
    return reply


def say(pipe: TextIO, message: dict[str, object]) -> None:
    """Write one line, unbuffered."""
    pipe.write(json.dumps(message) + "\n")
    pipe.flush()


def libraries() -> list[str]:
    """Return the shared libraries loaded here, so that a failed preload is noticed."""
    if sys.platform != "linux":
        return []
    maps = Path("/proc/self/maps").read_text(errors="replace")
    paths = {line.split()[-1] for line in maps.splitlines() if ".so" in line}
    return sorted(paths)


def serve(install: bool, expression: str | None = None) -> None:
    """Report that the worker is ready, then reply until standard input ends."""
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of an experiment must not reach the pipe
    warnings.filterwarnings("error", "read without memory behind it")  # such a figure would be meaningless
    install_ns = 0
    if install:
        import firsttouch

        start = time.perf_counter_ns()
        firsttouch.install(expression or "process", trim_c_library=True)  # as `firsttouch run` does
        install_ns = time.perf_counter_ns() - start
    say(pipe, {"libraries": libraries(), "numpy": np.__version__, "install_ns": install_ns})
    for line in sys.stdin:
        try:
            say(pipe, {"value": answer(line)})
        except Exception:
            say(pipe, {"error": traceback.format_exc()})


if __name__ == "__main__":
    try:
        serve("--install" in sys.argv[1:], sys.argv[2] if len(sys.argv) > 2 else None)
    except BrokenPipeError:  # the other end was closed by Ctrl-C; at exit Python would try the pipe once more
        os._exit(1)

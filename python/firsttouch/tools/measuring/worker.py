"""A contender's process: replies to each JSON line on standard input with one on standard output."""

from __future__ import annotations

import importlib
import json
import mmap
import os
import sys
import traceback
from typing import Any

from firsttouch import _firsttouch


def touch(nbytes: int) -> None:
    """Touch that much memory once, outside the allocator under test, and free it.

    In a virtual machine the host provides memory at the first touch, far more slowly than the kernel's own fault.
    """
    import numpy as np

    if nbytes <= 0:
        return
    private: Any = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    with mmap.mmap(-1, nbytes, **private) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(memory, np.uint8)
        pages[:: mmap.PAGESIZE] = 1
        del pages


def main() -> None:
    """Install the expression behind our parent's number, if there is one; then reply until standard input ends."""
    _firsttouch.end_with(int(sys.argv[1]))
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of an experiment must not reach the pipe
    for expression in sys.argv[2:]:
        import firsttouch

        firsttouch.install(expression, trim_c_library=True)  # as `firsttouch run` does
    for line in sys.stdin:
        request = json.loads(line)
        sys.path[:] = request["path"]
        try:
            function = getattr(importlib.import_module(request["module"]), request["function"])
            reply = {"value": function(**request["arguments"])}
        except Exception:
            reply = {"error": traceback.format_exc()}
        print(json.dumps(reply), file=pipe, flush=True)


if __name__ == "__main__":
    main()

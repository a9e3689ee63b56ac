"""A contender's process: calls the function that standard input names, and replies on standard output, as JSON."""

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
    """Reply, or end with the process that started this one, whose number is the argument."""
    _firsttouch.end_with(int(sys.argv[1]))
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of an experiment must not reach the pipe
    asked = json.load(sys.stdin)
    sys.path[:] = asked["path"]
    try:
        touch(asked["footprint"])
        function = getattr(importlib.import_module(asked["module"]), asked["function"])
        reply = {"value": function(**asked["arguments"])}
    except Exception:
        reply = {"error": traceback.format_exc()}
    print(json.dumps(reply), file=pipe, flush=True)


if __name__ == "__main__":
    main()

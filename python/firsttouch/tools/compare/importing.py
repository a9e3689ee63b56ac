"""What firsttouch itself costs a program at its start."""

from __future__ import annotations

import subprocess
from statistics import median

from firsttouch.tools.measuring.interpreter import helper

_PROBE = "import numpy, time; t = time.perf_counter(); import firsttouch; print(time.perf_counter() - t)"
_TIMES = 3


def seconds() -> float | None:
    """How long `import firsttouch` takes in a process that has NumPy; `None` where that fails."""
    took: list[float] = []
    for _ in range(_TIMES):
        probe = subprocess.run(
            helper("-c", _PROBE), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if probe.returncode != 0:
            return None
        took.append(float(probe.stdout))
    return median(took)

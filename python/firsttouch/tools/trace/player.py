"""Replays one trace against one allocator: `python -m firsttouch.tools.trace.player REQUEST`, in JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import firsttouch
from firsttouch import _firsttouch
from firsttouch._internal import resolve


def _status(name: str) -> int | None:
    for line in Path("/proc/self/status").read_text("utf-8", "replace").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return None


class _Start:
    """The state before the first event."""

    resident: int | None = None
    faults = 0
    kernel = 0.0

    def ready(self) -> None:
        """Reset the peak of the resident memory."""
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.resident = _status("VmRSS")
        except OSError:
            self.resident = None  # the kernel does not allow that
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.faults, self.kernel = usage.ru_minflt, usage.ru_stime


def play(request: dict[str, Any]) -> dict[str, Any]:
    """Replay. Raises what reading the trace raises."""
    parsed = resolve.parse(request["allocator"])
    alone = None
    if parsed != firsttouch.numpy_default():
        try:
            firsttouch.install(parsed)
        except TypeError:
            alone = parsed  # it cannot serve a whole process; the events use it directly
    start = _Start()
    rest = (request["touch"], request["threads"], request["incomplete"], start.ready)
    found: dict[str, Any] = _firsttouch.trace_replay(request["trace"], alone, *rest)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    peak = _status("VmHWM")
    held = peak - start.resident if peak is not None and start.resident is not None else None
    own = firsttouch.stats(parsed).as_dict() if parsed != firsttouch.numpy_default() else {}
    found |= {
        "allocator": request["allocator"],
        "peak_held": held,
        "allocator_peak_held": own.get("peak_held") or None,
        "faults": usage.ru_minflt - start.faults,
        "kernel_seconds": usage.ru_stime - start.kernel,
    }
    in_use = found["peak_in_use"]
    found["fragmentation"] = held / in_use if held is not None and in_use and not found["refused"] else None
    return found


def main() -> int:
    """Write the result to standard output."""
    try:
        answer = play(json.loads(sys.argv[1]))
    except (ValueError, TypeError, MemoryError, OSError, firsttouch.UnsupportedError) as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

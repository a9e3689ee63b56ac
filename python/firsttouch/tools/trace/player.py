"""Replays one trace against one allocator: `python -m firsttouch.tools.trace.player REQUEST`, in JSON."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import firsttouch
from firsttouch import _firsttouch
from firsttouch._internal import process_memory, resolve


class _Start:
    """The state before the first event."""

    resident: int | None = None
    faults = 0
    kernel = 0.0

    def ready(self) -> None:
        """Reset the peak of the resident memory."""
        try:
            process_memory.reset_peak()
            self.resident = process_memory.status("VmRSS")
        except (OSError, KeyError):
            self.resident = None  # the kernel does not allow that, or does not tell
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.faults, self.kernel = usage.ru_minflt, usage.ru_stime

    def grown(self) -> int | None:
        """Return by how much the resident memory grew at most."""
        try:
            return None if self.resident is None else process_memory.peak() - self.resident
        except KeyError:
            return None


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
    held = start.grown()
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

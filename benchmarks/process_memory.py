"""The resident memory of this process, in bytes."""

from __future__ import annotations

from pathlib import Path


def status(key: str) -> int:
    """Return a field of /proc/self/status, such as VmRSS or VmHWM."""
    for line in Path("/proc/self/status").read_text(errors="replace").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def resident() -> int:
    """Return the exact resident memory; the kernel's fast counters lag behind by some pages per thread."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) << 10
    return status("VmRSS")


def reset_peak() -> None:
    """Reset VmHWM to the current resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Return the peak of the resident memory since `reset_peak`."""
    return status("VmHWM")

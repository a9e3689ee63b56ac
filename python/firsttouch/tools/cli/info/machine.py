"""A summary of the machine: system, processors, memory."""

import os
import platform
import sys
from pathlib import Path
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.cli.info import kernel_files


def look(root: Path) -> dict[str, Any]:
    """Read system, processors and memory."""
    memory = kernel_files.fields(root / "proc/meminfo")
    return {
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "python": sys.version.split()[0],
        "processors": usable(),
        "memory_bytes": _kilobytes(memory.get("MemTotal")),
        "available_bytes": _kilobytes(memory.get("MemAvailable")),
        "swap_bytes": _kilobytes(memory.get("SwapTotal")),
    }


def usable() -> int | None:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _kilobytes(text: str | None) -> int | None:
    return int(text.split()[0]) * 1024 if text else None


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    sizes = {name: found[f"{name}_bytes"] for name in ("memory", "available", "swap")}
    said = {name: "unknown" if size is None else units.size(size) for name, size in sizes.items()}
    swap = "no" if sizes["swap"] == 0 else said["swap"]
    return [
        ("system", found["system"]),
        ("python", found["python"]),
        ("processors", f"{kernel_files.known(found['processors'])} usable"),
        ("memory", f"{said['memory']}, {said['available']} available, {swap} swap"),
    ]


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    if not found["system"].startswith("Linux"):
        return ["this system is not supported yet: NumPy keeps its own memory"]
    return []

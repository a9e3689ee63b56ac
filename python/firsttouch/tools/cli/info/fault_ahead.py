"""Whether `fault_ahead=True` can work: it needs two processors, and the page table to look at."""

import os
from pathlib import Path
from typing import Any

from firsttouch.tools.cli.info import cgroup, kernel_files, machine


def look(root: Path) -> dict[str, Any]:
    """Read what decides."""
    return {
        "processors": machine.usable(),
        "processor_quota": _quota(root),
        "page_table_readable": os.access(root / "proc/self/pagemap", os.R_OK),
    }


def _quota(root: Path) -> float | None:
    """Return for how many processors the control groups' time lasts; None where it is not limited."""
    two = [(kernel_files.read(folder / "cpu.max") or "").split() for folder in cgroup.levels_of(root, 2, "cpu")]
    one = [
        [kernel_files.read(folder / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        for folder in cgroup.levels_of(root, 1, "cpu")
    ]
    pairs = [pair for pair in two + one if len(pair) == 2 and all(word.isdecimal() for word in pair)]
    return min((int(quota) / int(period) for quota, period in pairs if int(period)), default=None)


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as a pair of a label and a value."""
    obstacle = _obstacle(found)
    can = "can work, while a processor is idle" if obstacle is None else f"cannot work: {obstacle}"
    return [("fault_ahead=True", can)]


def _obstacle(found: dict[str, Any]) -> str | None:
    if found["processors"] is not None and found["processors"] < 2:
        return "one usable processor"
    if found["processor_quota"] is not None and found["processor_quota"] < 2:
        return f"a quota of {found['processor_quota']:g} processors"
    return None if found["page_table_readable"] else "/proc/self/pagemap is not readable"


def meaning(_: dict[str, Any]) -> list[str]:
    """Return the conclusions: none, as it is off by default."""
    return []

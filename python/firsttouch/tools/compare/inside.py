"""Whether firsttouch really served a program: told by the reports that its processes wrote in their first run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Service:
    """Why a contender can't take part, or what is to be said beside its figures."""

    failure: str | None = None
    remark: str | None = None


def told(folder: Path) -> Service:
    """Read every process's report in the folder."""
    reports = [found for file in sorted(folder.glob("*.json")) if (found := _read(file)) is not None]
    pools = [report["pool"] for report in reports if report.get("pooled")]
    if pools:
        served = sum(pool["allocations"] for pool in pools if pool)
        counted = all(report["allocator"] is None for report in reports)  # others may keep no count
        return Service(remark=None if served or not counted else "it was asked for no large array")
    if not reports:
        return Service(remark="no process said that it was served: the program may not be Python's, or end by os._exit")
    reasons = [report["not_pooled_because"] for report in reports if report.get("numpy")]
    if reasons:
        return Service(failure=f"not served: {reasons[0] or 'NumPy came in unseen'}")
    return Service(remark="NumPy was never imported, so nothing was served")


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):  # a process that was ended while it wrote
        return None
    return found if isinstance(found, dict) else None

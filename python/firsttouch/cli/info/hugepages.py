"""The pools of explicit huge pages (hugetlb)."""

from pathlib import Path
from typing import Any

from _firsttouch_start import units
from firsttouch.cli.info import files

_COUNTS = {"pages": "nr_hugepages", "free": "free_hugepages", "overcommit": "nr_overcommit_hugepages"}


def look(root: Path) -> dict[str, Any]:
    """Read each pool, by page size in KiB: pages reserved, pages free, and how many may be added."""
    pools = {}
    for folder in sorted((root / "sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        kilobytes = folder.name.removeprefix("hugepages-").removesuffix("kB")
        if kilobytes.isdecimal():
            pools[kilobytes] = {name: files.number(folder / file) for name, file in _COUNTS.items()}
    return pools


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Show the topic as labels and values."""
    shown = []
    for kilobytes, pool in sorted(found.items(), key=lambda item: int(item[0])):
        pages, free, more = (files.known(pool[name]) for name in _COUNTS)
        shown.append((units.size(int(kilobytes) * 1024), f"{pages} pages, {free} free, {more} more on demand"))
    return shown or [("none", "the kernel shows no pools")]


def meaning(found: dict[str, Any]) -> list[str]:
    """Say what stands out."""
    idle = [(int(size), pool["free"]) for size, pool in found.items() if pool["free"]]
    return [
        f"{units.size(size * 1024 * free)} lie reserved in huge pages of {units.size(size * 1024)}:"
        " no other program can use that memory"
        for size, free in idle
    ]

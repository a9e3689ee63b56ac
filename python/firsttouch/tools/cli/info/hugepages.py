"""The pools of explicit huge pages (hugetlb), of the machine and of each node."""

from pathlib import Path
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.cli.info import kernel_files

_COUNTS = {
    "pages": "nr_hugepages",
    "free": "free_hugepages",
    "reserved": "resv_hugepages",
    "surplus": "surplus_hugepages",
    "overcommit": "nr_overcommit_hugepages",
}
_NODES = "sys/devices/system/node"


def look(root: Path) -> dict[str, Any]:
    """Read the pools, by page size in KiB.

    For each: the pages in it, free ones, those of them that are reserved, those beyond the pool's size, how many may be
    added on demand; and the counts of each node, if there are several.
    """
    pools: dict[str, Any] = {}
    for folder in sorted((root / "sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        kilobytes = folder.name.removeprefix("hugepages-").removesuffix("kB")
        if kilobytes.isdecimal():
            pools[kilobytes] = {name: kernel_files.number(folder / file) for name, file in _COUNTS.items()}
            pools[kilobytes]["nodes"] = _by_node(root, folder.name)
    return pools


def _by_node(root: Path, name: str) -> dict[str, dict[str, int | None]] | None:
    folders = {
        int(number): folder for folder in (root / _NODES).glob("node*") if (number := folder.name[4:]).isdecimal()
    }
    if len(folders) < 2:
        return None
    counts = ("pages", "free", "surplus")
    return {
        str(number): {
            count: kernel_files.number(folders[number] / "hugepages" / name / _COUNTS[count]) for count in counts
        }
        for number in sorted(folders)
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    shown = []
    for kilobytes, pool in sorted(found.items(), key=lambda item: int(item[0])):
        pages, free, claimed, surplus, more = (kernel_files.known(pool[name]) for name in _COUNTS)
        shown.append(
            (
                units.size(int(kilobytes) * 1024),
                f"{pages} pages, {free} free, {claimed} reserved, {surplus} surplus, {more} more on demand",
            )
        )
        for number, node in (pool["nodes"] or {}).items():
            pages, free, surplus = (kernel_files.known(node[name]) for name in ("pages", "free", "surplus"))
            shown.append((f"  on node {number}", f"{pages} pages, {free} free, {surplus} surplus"))
    if found and not any(pool["pages"] for pool in found.values()):
        folder = "/sys/devices/system/node/nodeN" if _several(found) else "/sys/kernel/mm"
        smallest = min(found, key=int)
        shown.append(
            ("to reserve some", f"as root, write a number to {folder}/hugepages/hugepages-{smallest}kB/nr_hugepages")
        )
    return shown or [("none", "the kernel reports no pools")]


def _several(found: dict[str, Any]) -> bool:
    return any(pool["nodes"] for pool in found.values())


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    idle = [(int(size), pool["free"]) for size, pool in found.items() if pool["free"]]
    return [
        f"{units.size(size * 1024 * free)} are reserved as huge pages of {units.size(size * 1024)}:"
        " no other program can use that memory"
        for size, free in idle
    ]

"""The limits that this process inherited: rlimits, overcommit, the number of mappings."""

from pathlib import Path
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.cli.info import kernel_files

_LIMITS = {"address_space": "RLIMIT_AS", "data": "RLIMIT_DATA", "locked": "RLIMIT_MEMLOCK"}
_MODES = {0: "0 (heuristic)", 1: "1 (always)", 2: "2 (strict)"}


def look(root: Path) -> dict[str, Any]:
    """Read the soft limits in bytes, None for no limit, and the kernel's own limits."""
    found: dict[str, Any] = {name: _limit(constant) for name, constant in _LIMITS.items()}
    found["overcommit"] = kernel_files.number(root / "proc/sys/vm/overcommit_memory")
    found["overcommit_ratio"] = kernel_files.number(root / "proc/sys/vm/overcommit_ratio")
    found["mappings"] = kernel_files.number(root / "proc/sys/vm/max_map_count")
    return found


def _limit(constant: str) -> int | None:
    try:
        import resource
    except ImportError:
        return None
    number = getattr(resource, constant, None)
    soft = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    shown = {name: "none" if found[name] is None else units.size(found[name]) for name in _LIMITS}
    mode = found["overcommit"]
    return [
        ("address space", shown["address_space"]),
        ("data", shown["data"]),
        ("locked memory", shown["locked"]),
        ("overcommit", _MODES.get(mode, kernel_files.known(mode))),
        ("mappings", kernel_files.known(found["mappings"])),
    ]


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    said = []
    for name, command in (("address_space", "ulimit -v"), ("data", "ulimit -d")):
        if found[name] is not None:
            limit = units.size(found[name])
            said.append(f"{command} is {limit}: reserved but unused memory counts, too; larger arrays fail")
    if found["overcommit"] == 2:
        said.append("overcommit is strict: every mapped byte counts, touched or not, so sparse arrays count in full")
    return said

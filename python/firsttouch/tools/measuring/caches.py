"""The caches that the kernel knows of."""

from __future__ import annotations

from pathlib import Path

CPU = Path("/sys/devices/system/cpu/cpu0/cache")


def caches(folder: Path = CPU) -> dict[str, int]:
    """Bytes of the data caches that the first processor uses, by name (`L1`, `L2`, ...); empty where nobody says."""
    found: dict[str, int] = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
            if kind != "Instruction":
                found[f"L{level}"] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
        except (OSError, ValueError):
            continue
    return dict(sorted(found.items()))


def level(nbytes: int, known: dict[str, int]) -> str:
    """The smallest cache that holds so much, or `memory`."""
    return next((name for name, size in known.items() if nbytes <= size), "memory")

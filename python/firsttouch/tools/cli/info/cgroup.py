"""The memory limits of the control group: version 1, version 2, or both."""

from pathlib import Path
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.cli.info import kernel_files

#: Version 1 represents "no limit" by the largest multiple of a page that fits.
_NO_LIMIT = 1 << 62

_FILES = {
    1: {
        "limit": "memory.limit_in_bytes",
        "soft": "memory.soft_limit_in_bytes",
        "used": "memory.usage_in_bytes",
    },
    2: {"limit": "memory.max", "soft": "memory.high", "used": "memory.current"},
}


def look(root: Path) -> dict[str, Any]:
    """Find the tightest limit on the way from this process's group up to the root."""
    for version in (2, 1):
        group = _group(root, version, "memory")
        folders = levels_of(root, version, "memory")
        names = _FILES[version]
        if any((folder / names["used"]).exists() for folder in folders):
            levels = [{name: _bytes(folder / file) for name, file in names.items()} for folder in folders]
            return {
                "version": version,
                "group": group,
                "limit_bytes": _least(level["limit"] for level in levels),
                "soft_limit_bytes": _least(level["soft"] for level in levels),
                "used_bytes": next((level["used"] for level in levels if level["used"] is not None), None),
            }
    empty = dict.fromkeys(("version", "group", "limit_bytes", "soft_limit_bytes", "used_bytes"))
    return dict(empty)


def levels_of(root: Path, version: int, controller: str) -> list[Path]:
    """List the folders of a controller from this process's group up to the root."""
    mount, group = _mount(root, version, controller), _group(root, version, controller)
    return [] if mount is None or group is None else _upwards(mount, group)


def _mount(root: Path, version: int, controller: str) -> Path | None:
    """Return the mount point of a controller's hierarchy."""
    for line in (kernel_files.read(root / "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        words = after.split()
        kind, options = (words[0], words[-1].split(",")) if words else ("", [])
        counts = kind == "cgroup2" if version == 2 else kind == "cgroup" and controller in options
        if counts:
            return root / before.split()[4].lstrip("/")
    return None


def _group(root: Path, version: int, controller: str) -> str | None:
    for line in (kernel_files.read(root / "proc/self/cgroup") or "").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if (version == 2 and number == "0") or (version == 1 and controller in controllers.split(",")):
            return path
    return None


def _upwards(mount: Path, group: str) -> list[Path]:
    """List the group's folder and those above it; in a container only the mount point may exist."""
    folder = mount / group.lstrip("/")
    above = [folder, *folder.parents]
    return [place for place in above if place.is_dir() and place.is_relative_to(mount)]


def _bytes(path: Path) -> int | None:
    value = kernel_files.number(path)
    return value if value is not None and value < _NO_LIMIT else None


def _least(values: Any) -> int | None:
    return min((value for value in values if value is not None), default=None)


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    if found["version"] is None:
        return [("memory", "not counted by a control group")]
    shown = {
        name: "none" if found[f"{name}_bytes"] is None else units.size(found[f"{name}_bytes"])
        for name in ("limit", "soft_limit", "used")
    }
    return [
        ("group", f"{found['group']} (version {found['version']})"),
        ("memory limit", f"{shown['limit']}, soft {shown['soft_limit']}"),
        ("used", shown["used"]),
    ]


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    said = []
    if found["limit_bytes"] is not None:
        left = max(0, found["limit_bytes"] - (found["used_bytes"] or 0))
        said.append(
            f"the control group is limited to {units.size(found['limit_bytes'])} ({units.size(left)} left):"
            " beyond that the kernel kills processes; the pool keeps less idle memory when little is left"
        )
    if found["soft_limit_bytes"] is not None:
        said.append(f"above {units.size(found['soft_limit_bytes'])} the kernel throttles the control group")
    return said

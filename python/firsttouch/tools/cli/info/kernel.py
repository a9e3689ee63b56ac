"""The kernel's memory features: tested where that is harmless, otherwise derived from the version."""

import platform
import re
from pathlib import Path
from typing import Any

from firsttouch.tools import host
from firsttouch.tools.cli.info import kernel_files

#: Kinds of advice, by their number in the kernel's interface; each is tested on a page mapped for it.
_ADVICE = {
    "MADV_FREE": 8,
    "MADV_HUGEPAGE": 14,
    "MADV_WIPEONFORK": 18,
    "MADV_POPULATE_READ": 22,
    "MADV_POPULATE_WRITE": 23,
    "MADV_GUARD_INSTALL": 102,
}

#: The first kernel version with the feature.
_SINCE = {
    "MAP_FIXED_NOREPLACE": (4, 17),
    "MPOL_PREFERRED_MANY": (5, 15),
    "MADV_COLLAPSE": (6, 1),
    "PAGEMAP_SCAN": (6, 7),
    "MPOL_WEIGHTED_INTERLEAVE": (6, 9),
}


def look(root: Path) -> dict[str, Any]:
    """Find the features. The version is always that of the running kernel, even under another `root`."""
    release = kernel_files.read(root / "proc/sys/kernel/osrelease") or platform.release()
    version = _version(release)
    return {
        "release": release,
        "features": {name: _advise(number) for name, number in _ADVICE.items()}
        | {name: version >= since if version else None for name, since in _SINCE.items()},
        "pagemap_readable": _opens(root / "proc/self/pagemap"),
        "init_on_alloc": _init_on_alloc(root, release),
        "host_takes_free_memory": host.takes_free_memory(root),
    }


def _version(release: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match and platform.system() == "Linux" else None


def _advise(number: int) -> bool | None:
    """Return whether the kernel accepts this advice on a fresh mapping; None if there is no mapping."""
    try:
        import mmap

        with mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
            try:
                fresh.madvise(number)
            except OSError as error:
                import errno

                # EINVAL means that the kernel does not know the advice; any other error, that it could not comply.
                return error.errno not in (errno.EINVAL, errno.ENOSYS)
            return True
    except (ImportError, AttributeError, OSError, ValueError):
        return None


def _opens(path: Path) -> bool:
    try:
        with path.open("rb"):
            return True
    except OSError:
        return False


def _init_on_alloc(root: Path, release: str) -> bool | None:
    """Return whether the kernel clears every page that it allocates for itself or for others."""
    for word in (kernel_files.read(root / "proc/cmdline") or "").split():
        name, _, value = word.partition("=")
        if name == "init_on_alloc":
            return value.lower() in ("1", "on", "y", "yes", "true")
    config = kernel_files.read(root / f"boot/config-{release}") or _packed(root / "proc/config.gz")
    return None if config is None else "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y" in config


def _packed(path: Path) -> str | None:
    import gzip

    try:
        return gzip.decompress(path.read_bytes()).decode()
    except (OSError, ValueError, EOFError):
        return None


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    features = found["features"]
    missing = [name for name, there in features.items() if there is False]
    unknown = [name for name, there in features.items() if there is None]
    cleared = {None: "unknown", False: "off", True: "on"}[found["init_on_alloc"]]
    shown = [
        ("release", found["release"]),
        ("has", " ".join(name for name, there in features.items() if there) or "none known"),
        ("lacks", " ".join(missing) or "none of these"),
    ]
    shown += [("not known", " ".join(unknown))] if unknown else []
    return [
        *shown,
        ("/proc/self/pagemap", "readable" if found["pagemap_readable"] else "not readable"),
        ("init_on_alloc", cleared),
        ("free memory", "reported to the host" if found["host_takes_free_memory"] else "kept"),
    ]


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    said = []
    if found["init_on_alloc"]:
        said.append("init_on_alloc is on: the kernel clears every page twice, so reusing memory saves even more here")
    if found["host_takes_free_memory"]:
        said.append(
            "memory that has been free for seconds goes back to the host of this virtual machine, and is slow to touch "
            "again: reusing memory saves more here, and measurements vary more"
        )
    if found["features"]["MADV_POPULATE_WRITE"] is False:
        said.append("the kernel cannot populate memory on request (it can since 5.14): pages are touched one by one")
    return said

"""The malloc under NumPy: which one is loaded, and its settings in the environment."""

import os
import platform
from pathlib import Path
from typing import Any

from firsttouch.tools import malloc_variables
from firsttouch.tools.cli.info import kernel_files

_PEERS = ("tcmalloc", "jemalloc", "mimalloc", "tbbmalloc")


def look(root: Path) -> dict[str, Any]:
    """Find the C library, other mallocs that replace its own, and the variables that configure them."""
    name, version = platform.libc_ver()
    return {
        "libc": f"{name} {version}".strip() or None,
        "preloaded": _preloaded(root),
        "tunables": _tunables(os.environ.get("GLIBC_TUNABLES", "")),
        "variables": {name: value for name, value in sorted(os.environ.items()) if _steers(name)},
    }


def _steers(name: str) -> bool:
    """Return whether it configures or replaces the malloc."""
    return name.startswith(malloc_variables.PREFIXES) or name in ("LD_PRELOAD", "PYTHONMALLOC")


def _preloaded(root: Path) -> dict[str, str]:
    """Map the name of each other malloc in this process to its file."""
    found = {}
    for line in (kernel_files.read(root / "proc/self/maps") or "").splitlines():
        words = line.split(maxsplit=5)
        path = words[5] if len(words) == 6 else ""
        for peer in _PEERS:
            if peer in Path(path).name:
                found[peer] = path
    return found


def _tunables(text: str) -> dict[str, str]:
    """Parse glibc's tunables; the last setting of a name applies, as in glibc."""
    pairs = (pair.partition("=") for pair in text.split(":") if pair.startswith("glibc."))
    return {name: value for name, _, value in pairs}


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    preloaded = ", ".join(f"{name} ({path})" for name, path in found["preloaded"].items())
    settings = found["tunables"] | found["variables"]
    return [
        ("C library", kernel_files.known(found["libc"])),
        ("malloc in use", preloaded or "the C library's own"),
        ("settings", ", ".join(f"{name}={value}" for name, value in settings.items()) or "none"),
    ]


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    settings = found["tunables"] | found["variables"]
    said = []
    if found["preloaded"]:
        said.append(
            f"{' and '.join(found['preloaded'])} replaces malloc; under firsttouch it still serves small arrays"
            " and everything other than NumPy's arrays"
        )
    elif trim := _trim(settings):
        said.append(
            f"{trim} is set: glibc then no longer adapts its thresholds to the program, and returns and"
            " faults in the same memory repeatedly (`a+b` on arrays of 0.25 to 3.5 MiB took 12 to 16"
            " times as long as with `out=` at 65536, Dask's setting); arrays in the pool are not affected"
        )
    if settings.get("glibc.malloc.hugetlb", "0") != "0":
        said.append("glibc.malloc.hugetlb is set: malloc itself requests huge pages")
    if settings.get("MALLOC_PERTURB_", "0") != "0" or settings.get("glibc.malloc.perturb", "0") != "0":
        said.append("malloc overwrites memory on allocation and free (perturb), which takes time")
    return said


def _trim(settings: dict[str, str]) -> str | None:
    """Return the setting that keeps the trim threshold low."""
    for name in ("MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold"):
        text = settings.get(name, "")
        try:
            low = int(text, 0) < 1 << 25  # glibc itself raises it to at most twice 32 MiB
        except ValueError:
            continue
        if low:
            return f"{name}={text}"
    return None

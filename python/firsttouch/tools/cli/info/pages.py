"""Page sizes and transparent huge pages, including mTHP."""

import os
from pathlib import Path
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.cli.info import kernel_files

_FOLDER = "sys/kernel/mm/transparent_hugepage"


def look(root: Path) -> dict[str, Any]:
    """Read the kernel's page sizes and settings."""
    folder = root / _FOLDER
    return {
        "page_bytes": os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None,
        "huge_page_bytes": kernel_files.number(folder / "hpage_pmd_size"),
        "thp": kernel_files.chosen(folder / "enabled"),
        "shown": folder.parent.is_dir(),
        "defrag": kernel_files.chosen(folder / "defrag"),
        "zero_page": kernel_files.number(folder / "use_zero_page"),
        "khugepaged_defrag": kernel_files.number(folder / "khugepaged/defrag"),
        "khugepaged_max_ptes_none": kernel_files.number(folder / "khugepaged/max_ptes_none"),
        "mthp": _mthp(folder),
    }


def _mthp(folder: Path) -> dict[str, str] | None:
    """Map each supported size of multi-size huge pages, in KiB, to its mode."""
    sizes = {}
    for entry in folder.glob("hugepages-*kB"):
        kilobytes = entry.name.removeprefix("hugepages-").removesuffix("kB")
        mode = kernel_files.chosen(entry / "enabled")
        if kilobytes.isdecimal() and mode is not None:
            sizes[kilobytes] = mode
    return dict(sorted(sizes.items(), key=lambda item: int(item[0]))) or None


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    huge = found["huge_page_bytes"]
    return [
        ("page", units.size(found["page_bytes"]) if found["page_bytes"] else "unknown"),
        ("huge page", units.size(huge) if huge else "none known"),
        ("transparent (THP)", f"{kernel_files.known(found['thp'])}, defrag {kernel_files.known(found['defrag'])}"),
        ("mTHP", _mthp_text(found["mthp"])),
    ]


def _mthp_text(sizes: dict[str, str] | None) -> str:
    if sizes is None:
        return "none (needs Linux 6.8)"
    modes: dict[str, list[str]] = {}
    for kilobytes, mode in sizes.items():
        modes.setdefault(mode, []).append(kilobytes)
    return "; ".join(f"{' '.join(sizes)} KiB {mode}" for mode, sizes in modes.items())


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    mode, said = found["thp"], []
    if mode is None and found["shown"]:
        said.append("the kernel reports no transparent huge pages: large arrays use small pages")
    elif mode == "never":
        said.append(
            "transparent huge pages are off (never): every small page of a new array takes a page fault;"
            " `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` as root turns them on"
        )
    elif mode == "always":
        said.append(
            "THP is `always`: NumPy's arrays get huge pages anyway, and sparsely touched memory"
            " may become resident in full"
        )
    if mode in ("madvise", "always") and found["defrag"] == "never":
        said.append("THP defrag is `never`: on a fragmented machine huge pages are not available immediately")
    return said

"""The machine's memory: its facts.

Files of the kernel are read below a root, which tests replace. Any of them may be missing.
"""

from __future__ import annotations

import mmap
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from firsttouch import _firsttouch
from firsttouch._internal import units
from firsttouch.tools import preload
from firsttouch.tools.measuring.contenders import LIBRARIES

_THP = "sys/kernel/mm/transparent_hugepage"

#: Where the kernel's files are. Other systems have none, whatever an emulator shows there.
ROOT = Path("/" if sys.platform == "linux" else "/no such folder")


def read(path: Path) -> str:
    """Return the text of a file without surrounding white space; nothing if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def chosen(path: Path) -> str:
    """Return the word in brackets, as in "always [madvise] never", or the only word."""
    text = read(path)
    return text.partition("[")[2].partition("]")[0] or text


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(root: Path = ROOT) -> dict[str, str]:
    """Return what a reader needs to know of this machine and process, by label."""
    cpu, memory = _fields(root / "proc/cpuinfo"), _fields(root / "proc/meminfo")
    huge = read(root / _THP / "hpage_pmd_size")
    gil = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", without the GIL"
    _, group, address_space, data = _firsttouch.memory_bounds()
    total = memory.get("MemTotal", "").removesuffix(" kB")
    found = {
        "CPU": cpu.get("model name") or platform.processor() or platform.machine(),
        "processors": f"{processors()} usable of {os.cpu_count()}",
        "memory": f"{units.size(int(total) << 10)}, {units.size(_firsttouch.headroom())} available"
        if total.isdecimal()
        else "",
        "control group": group and f"{units.size(group[0])}, of which {units.size(group[1])} are used",
        "address space": address_space and units.size(address_space[0]),
        "data": data and units.size(data[0]),
        "overcommit": read(root / "proc/sys/vm/overcommit_memory"),
        "page": units.size(mmap.PAGESIZE),
        "huge page": units.size(int(huge)) if huge.isdecimal() else "",
        "transparent huge pages": chosen(root / _THP / "enabled"),
        "defrag": chosen(root / _THP / "defrag"),
        "reserved huge pages": ", ".join(f"{count} of {size}" for size, count in _reserved(root)),
        "NUMA": (nodes := read(root / "sys/devices/system/node/has_memory")) and f"memory on node {nodes}",
        "malloc": ", ".join(_mallocs(root)) or " ".join(platform.libc_ver()).strip(),
        "preloaded library": preload.missing() or preload.FILE,
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}{gil}",
        "NumPy": metadata.version("numpy"),
        "firsttouch": metadata.version("firsttouch"),
    }
    return {label: words for label, words in found.items() if words}


def _fields(path: Path) -> dict[str, str]:
    """Return the first value of each name before a colon."""
    lines = (line.partition(":") for line in reversed(read(path).splitlines()))
    return {name.strip(): value.strip() for name, _, value in lines}


def _reserved(root: Path) -> list[tuple[str, str]]:
    """Return how many pages of the pools of explicit huge pages (hugetlb) are free, by size."""
    files = (root / "sys/kernel/mm/hugepages").glob("hugepages-[0-9]*kB/free_hugepages")
    counts = [(units.size(int(file.parent.name[10:-2]) << 10), read(file)) for file in sorted(files)]
    return [(size, count) for size, count in counts if count != "0"]


def _mallocs(root: Path) -> list[str]:
    """Return the loaded libraries that replace the C library's malloc."""
    paths = {line.split(maxsplit=5)[-1] for line in read(root / "proc/self/maps").splitlines()}
    return sorted(path for path in paths if path[:1] == "/" and any(peer in Path(path).name for peer in LIBRARIES))

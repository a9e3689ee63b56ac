"""The machine in words; everything is read, nothing typed in."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import numpy as np

from firsttouch.measuring.contenders import LIBRARIES, library
from firsttouch.measuring.process import cgroup_file


def read(path: str | Path | None, missing: str = "not readable") -> str:
    """A small file of the kernel's."""
    try:
        return missing if path is None else Path(path).read_text().strip()
    except OSError:
        return missing


def meminfo(key: str) -> int:
    """A field of /proc/meminfo in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def gib(nbytes: int) -> str:
    """A size in GiB."""
    return f"{nbytes / (1 << 30):.1f} GiB"


def available() -> int:
    """What this process may still use: the machine's free memory, or less where the control group says so."""
    bound = cgroup_file("memory.max", "memory.limit_in_bytes")
    used = cgroup_file("memory.current", "memory.usage_in_bytes")
    free = meminfo("MemAvailable")
    if bound is None or used is None or not read(bound).isdigit():
        return free
    return max(0, min(free, int(read(bound)) - int(read(used))))


def cpu() -> str:
    """The processor's name, with what a hypervisor leaves of it."""
    facts: dict[str, str] = {}
    for line in read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    family = f"family {facts.get('cpu family', '?')}, model {facts.get('model', '?')}"
    guest = ", virtual" if "hypervisor" in facts.get("flags", "").split() else ""
    return f"{name} ({family}{guest})"


def peers() -> str:
    """Each preloadable malloc with the file it is, or that it is absent."""
    words: list[str] = []
    for name, file in LIBRARIES.items():
        path = library(file)
        words.append(f"{name} {'absent' if path is None else path.resolve().name}")
    return ", ".join(words)


def describe() -> dict[str, str]:
    """What a reader needs to judge the figures."""
    thp = Path("/sys/kernel/mm/transparent_hugepage")
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
    limit = read(cgroup_file("memory.max", "memory.limit_in_bytes"))
    bounded = limit.isdigit() and int(limit) < meminfo("MemTotal")
    return {
        "CPU": cpu(),
        "cores": f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}, {nodes} NUMA node(s)",
        "memory": f"{gib(meminfo('MemTotal'))}, swap {gib(meminfo('SwapTotal'))}",
        "kernel": platform.release(),
        "transparent huge pages": f"{read(thp / 'enabled')}; defrag {read(thp / 'defrag')}",
        "overcommit": read("/proc/sys/vm/overcommit_memory"),
        "cgroup memory limit": gib(int(limit)) if bounded else "none",
        "libc": " ".join(platform.libc_ver()),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "NumPy": np.__version__,
        "firsttouch": importlib.metadata.version("firsttouch"),
        "peers": peers(),
    }

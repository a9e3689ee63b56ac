"""The machine in words; everything is read, nothing typed in."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

import firsttouch
from firsttouch.tools.measuring import kernel
from firsttouch.tools.measuring.contenders import LIBRARIES, library
from firsttouch.tools.measuring.files import read
from firsttouch.tools.measuring.process import cgroup_file


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


def processors() -> str:
    """How many processors the control group grants."""
    quota, _, period = read(cgroup_file("cpu.max", ""), "max").partition(" ")
    return f"{int(quota) / int(period):g}" if quota.isdigit() and period.isdigit() else "none"


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
        "multi-size huge pages": kernel.sizes_of_thp(),
        "AutoNUMA": kernel.autonuma(),
        "init_on_alloc": kernel.init_on_alloc(),
        "mitigations": kernel.mitigations(),
        "frequency": kernel.frequency(),
        "overcommit": read("/proc/sys/vm/overcommit_memory"),
        "cgroup memory limit": gib(int(limit)) if bounded else "none",
        "cgroup processor limit": processors(),
        "libc": " ".join(platform.libc_ver()),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "NumPy": np.__version__,
        "firsttouch": firsttouch.__version__,
        "malloc settings": kernel.malloc_settings(),
        "peers": peers(),
    }

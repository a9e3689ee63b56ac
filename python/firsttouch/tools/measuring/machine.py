"""The machine that figures come from: processor, caches, kernel settings and memory, read from the kernel."""

from __future__ import annotations

import gzip
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import firsttouch
from _firsttouch_start import units
from firsttouch.tools import host, malloc_variables
from firsttouch.tools.measuring.contenders import LIBRARIES, library

MISSING = "not readable"


def read(path: str | Path | None, missing: str = MISSING) -> str:
    """Return the content of the file without surrounding white space."""
    try:
        return missing if path is None else Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return missing


def fields(path: str | Path, separator: str | None = None) -> dict[str, int]:
    """Return the lines that consist of a name and a number; empty if the file cannot be read."""
    found: dict[str, int] = {}
    for line in read(path, "").splitlines():
        words = line.replace(":", " ").split(separator)
        if len(words) >= 2 and words[1].isdecimal():
            found[words[0]] = int(words[1])
    return found


def chosen(text: str) -> str:
    """Return the word in brackets among the kernel's alternatives, as in `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0] or text


CPU = Path("/sys/devices/system/cpu/cpu0/cache")


def caches(folder: Path = CPU) -> dict[str, int]:
    """Return the sizes of the first processor's data caches, by name (`L1`, `L2`, ...); empty if unknown."""
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
    """Return the smallest cache that holds so many bytes, or `memory`."""
    return next((name for name, size in known.items() if nbytes <= size), "memory")


_CPU = Path("/sys/devices/system/cpu")
_THP = Path("/sys/kernel/mm/transparent_hugepage")


def mitigations(folder: Path = _CPU / "vulnerabilities") -> str:
    """Return the processor vulnerabilities that the kernel mitigates, which makes system calls slower."""
    found: dict[str, list[str]] = {"mitigated": [], "vulnerable": [], "unknown": []}
    unaffected = 0
    for file in sorted(folder.glob("*")):
        text = read(file).lower()
        if text.startswith("not affected"):
            unaffected += 1
        elif "mitigation" in text and "vulnerable" not in text.partition(":")[0]:
            found["mitigated"].append(file.name)
        else:
            found["vulnerable" if text.startswith("vulnerable") else "unknown"].append(file.name)
    words = [f"{kind}: {', '.join(names)}" for kind, names in found.items() if names]
    if not words and not unaffected:
        return MISSING
    return "; ".join(
        [
            *words,
            f"not affected by {units.count(unaffected, 'other')}" if words else "not affected by any known",
        ]
    )


def sizes_of_thp(folder: Path = _THP) -> str:
    """Return the sizes of multi-size huge pages (mTHP) that are enabled, with their modes."""
    found: list[tuple[int, str]] = []
    for file in folder.glob("hugepages-*kB/enabled"):
        kib = int(re.sub(r"\D", "", file.parent.name))
        if (how := chosen(read(file))) != "never":
            found.append((kib, f"{kib} KiB {how}"))
    if not list(folder.glob("hugepages-*kB")):
        return "not in this kernel"
    return ", ".join(words for _, words in sorted(found)) or "all off"


def init_on_alloc(root: Path = Path("/")) -> str:
    """Return whether the kernel zeroes pages on allocation, in addition to when it maps them."""
    told = re.findall(r"\binit_on_alloc=(\w+)", read(root / "proc/cmdline"))
    if told:
        return f"{told[-1]} (command line)"
    for config in (root / "proc/config.gz", root / "boot" / f"config-{platform.release()}"):
        try:
            text = gzip.decompress(config.read_bytes()).decode() if config.suffix == ".gz" else config.read_text()
        except (OSError, EOFError, UnicodeDecodeError):
            continue
        return "1 (built in)" if "\nCONFIG_INIT_ON_ALLOC_DEFAULT_ON=y" in text else "0 (built in)"
    return MISSING


def autonuma(root: Path = Path("/")) -> str:
    """Return whether the kernel moves pages to the node that uses them."""
    text = read(root / "proc/sys/kernel/numa_balancing", "not in this kernel")
    return {"0": "off", "1": "on"}.get(text, text)


def governors(folder: Path = _CPU) -> list[str]:
    """Return the frequency governors, each once; empty if this kernel does not report any."""
    return sorted({read(file) for file in folder.glob("cpu[0-9]*/cpufreq/scaling_governor")})


def frequency(folder: Path = _CPU) -> str:
    """Return the governor, and whether the processor may exceed its nominal frequency."""
    turbo = MISSING
    for file, on in ((folder / "intel_pstate/no_turbo", "0"), (folder / "cpufreq/boost", "1")):
        if (text := read(file)) != MISSING:
            turbo = "on" if text == on else "off"
    return f"governor {', '.join(governors(folder)) or MISSING}, turbo {turbo}"


def malloc_settings() -> str:
    """Return the variables of this process's environment that configure or preload a malloc."""
    known = (*malloc_variables.PREFIXES, "GLIBC_TUNABLES", "LD_PRELOAD", "PYTHONMALLOC")
    found = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(known)]
    return " ".join(found) or "none"


def meminfo(key: str) -> int:
    """Return a field of /proc/meminfo in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def cgroup_file(v2: str, v1: str) -> Path | None:
    """Return a file of this process's memory control group, or of the nearest visible group above."""
    return next(cgroup_files(v2, v1), None)


def cgroup_files(v2: str, v1: str) -> Iterator[Path]:
    """Yield the same file of each group, from this process's own to the topmost visible one."""
    for line in read("/proc/self/cgroup", "").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, name = Path("/sys/fs/cgroup"), v2
        elif "memory" in controllers.split(","):
            root, name = Path("/sys/fs/cgroup/memory"), v1
        else:
            continue
        if not name:  # this version has no such file
            continue
        folder = root / path.lstrip("/")
        while True:
            if (folder / name).exists():
                yield folder / name
            if folder == root:
                break
            folder = folder.parent


def cgroup_current() -> int | None:
    """Return the bytes charged to this process's control group now; None if unknown."""
    file = cgroup_file("memory.current", "memory.usage_in_bytes")
    return None if file is None else int(file.read_text())


def cgroup_bound() -> tuple[int, int] | None:
    """Return the limit of the control group that leaves least, and the bytes that count towards it and stay."""
    bounds: list[tuple[int, int]] = []
    for file in cgroup_files("memory.max", "memory.limit_in_bytes"):
        current = "memory.current" if file.name == "memory.max" else "memory.usage_in_bytes"
        limit, used = read(file), read(file.with_name(current))
        if limit.isdigit() and used.isdigit():
            stat = fields(file.with_name("memory.stat"))
            cache = stat.get("total_inactive_file", stat.get("inactive_file", 0))  # which goes where memory is short
            bounds.append((int(limit), max(0, int(used) - cache)))
    return min(bounds, key=lambda bound: bound[0] - bound[1], default=None)


def available() -> int:
    """Return the bytes that this process may still use: the machine's free memory, or what control groups allow."""
    free, bound = meminfo("MemAvailable"), cgroup_bound()
    return free if bound is None else max(0, min(free, bound[0] - bound[1]))


def cpu() -> str:
    """Return the processor's name, family and model, as far as a hypervisor reveals them."""
    facts: dict[str, str] = {}
    for line in read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    family = f"family {facts.get('cpu family', '?')}, model {facts.get('model', '?')}"
    guest = ", virtual" if "hypervisor" in facts.get("flags", "").split() else ""
    return f"{name} ({family}{guest})"


def peers() -> str:
    """Return each preloadable malloc with its file, or that it is absent."""
    words: list[str] = []
    for name, file in LIBRARIES.items():
        path = library(file)
        words.append(f"{name} {'absent' if path is None else path.resolve().name}")
    return ", ".join(words)


def processors() -> str:
    """Return the number of processors that control groups grant."""
    pairs = [read(file).split(" ") for file in cgroup_files("cpu.max", "")]
    granted = [int(pair[0]) / int(pair[1]) for pair in pairs if len(pair) == 2 and all(map(str.isdigit, pair))]
    return f"{min(granted):g}" if granted else "none"


def gil() -> str:
    """What to add to the version of a Python whose threads do not take turns."""
    return "" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", without the GIL"


def describe() -> dict[str, str]:
    """Return the facts that a reader needs to judge the figures."""
    thp = Path("/sys/kernel/mm/transparent_hugepage")
    nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
    bound = cgroup_bound()
    limit = units.size(bound[0], 1) if bound is not None and bound[0] < meminfo("MemTotal") else "none"
    return {
        "CPU": cpu(),
        "cores": f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}, {nodes} NUMA node(s)",
        "memory": f"{units.size(meminfo('MemTotal'), 1)}, swap {units.size(meminfo('SwapTotal'), 1)}",
        "kernel": platform.release(),
        "transparent huge pages": f"{read(thp / 'enabled')}; defrag {read(thp / 'defrag')}",
        "multi-size huge pages": sizes_of_thp(),
        "AutoNUMA": autonuma(),
        "init_on_alloc": init_on_alloc(),
        "free memory": "reported to the host" if host.takes_free_memory() else "kept",
        "mitigations": mitigations(),
        "frequency": frequency(),
        "overcommit": read("/proc/sys/vm/overcommit_memory"),
        "cgroup memory limit": limit,
        "cgroup processor limit": processors(),
        "libc": " ".join(platform.libc_ver()),
        "Python": f"{platform.python_implementation()} {platform.python_version()}{gil()}",
        "NumPy": np.__version__,
        "firsttouch": firsttouch.__version__,
        "malloc settings": malloc_settings(),
        "peers": peers(),
    }

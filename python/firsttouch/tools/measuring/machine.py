"""The machine's memory: its facts, what they mean for arrays and for measurements, and what disturbs a measurement.

Files of the kernel are read below a root, which tests replace. Any of them may be missing: `None` stands for what this
machine does not report.
"""

from __future__ import annotations

import mmap
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firsttouch import _firsttouch
from firsttouch._internal import units
from firsttouch.tools.measuring.contenders import LIBRARIES, PREFIXES, library

Facts = dict[str, Any]
_THP = "sys/kernel/mm/transparent_hugepage"
_POOLS = "sys/kernel/mm/hugepages"
_NODES = "sys/devices/system/node"
_CPU = "sys/devices/system/cpu"


def read(path: Path) -> str | None:
    """Return the text of a file without surrounding white space; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(path: Path) -> int | None:
    """Return the number in a file; None if the file is missing or contains something else."""
    text = read(path)
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def chosen(path: Path) -> str | None:
    """Return the word in brackets, as in "always [madvise] never", or the only word."""
    text = read(path) or ""
    return text.partition("[")[2].partition("]")[0] or text or None


def fields(path: Path | None) -> dict[str, str]:
    """Return the lines that consist of a name, with or without a colon, and a value; empty if it cannot be read."""
    lines = (line.partition(":" if ":" in line else " ") for line in (read(path) or "" if path else "").splitlines())
    return {name.strip(): value.strip() for name, _, value in lines if value}


def counts(path: Path | None) -> dict[str, int]:
    """Return those whose value is a number."""
    return {name: int(value) for name, value in fields(path).items() if value.isdecimal()}


def _kib(text: str | None) -> int | None:
    return int(text.split()[0]) * 1024 if text else None


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available() -> int:
    """Return the bytes that this process may still use: the machine's free memory, or what control groups allow."""
    free: int = _firsttouch.headroom()
    return free


# --- facts, by topic

#: Where the kernel's files are. Other systems have none, whatever an emulator shows there.
ROOT = Path("/" if sys.platform == "linux" else "/no such folder")


def look(root: Path = ROOT) -> dict[str, Facts]:
    """Return the facts of every topic, for `shown` and for JSON. A name ends with its unit where it has one."""
    return {
        "machine": _machine(root),
        "pages": _pages(root),
        "huge page pools": _huge_page_pools(root),
        "numa": _numa(root),
        "kernel": _kernel(root),
        "malloc": _malloc(root),
        "limits": _limits(root),
    }


def _machine(root: Path) -> Facts:
    memory, cpu = fields(root / "proc/meminfo"), fields(root / "proc/cpuinfo")
    guest = ", virtual" if "hypervisor" in cpu.get("flags", "").split() else ""
    family = f"family {cpu.get('cpu family', '?')}, model {cpu.get('model', '?')}{guest}"
    gil = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", without the GIL"
    return {
        "CPU": f"{cpu.get('model name') or platform.processor() or platform.machine()} ({family})",
        "cores": f"{processors()} usable of {os.cpu_count()}",
        "memory_bytes": _kib(memory.get("MemTotal")),
        "available_bytes": _kib(memory.get("MemAvailable")),
        "swap_bytes": _kib(memory.get("SwapTotal")),
        "Python": f"{platform.python_implementation()} {platform.python_version()}{gil}",
        "NumPy": _version_of("numpy"),
        "firsttouch": _version_of("firsttouch"),
    }


def _version_of(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _pages(root: Path) -> Facts:
    return {
        "page_bytes": mmap.PAGESIZE,
        "huge_page_bytes": number(root / _THP / "hpage_pmd_size"),
        "transparent_huge_pages": chosen(root / _THP / "enabled"),
        "defrag": chosen(root / _THP / "defrag"),
    }


_COUNTS = {"pages": "nr_hugepages", "free": "free_hugepages", "reserved": "resv_hugepages"}


def _huge_page_pools(root: Path) -> Facts:
    """Return the pages in the pools of explicit huge pages (hugetlb), by size."""
    folders = sorted((root / _POOLS).glob("hugepages-[0-9]*kB"), key=lambda folder: int(folder.name[10:-2]))
    return {
        units.size(int(folder.name[10:-2]) << 10): {name: number(folder / file) for name, file in _COUNTS.items()}
        for folder in folders
    }


def _numa(root: Path) -> Facts:
    status, nodes = fields(root / "proc/self/status"), root / _NODES
    balancing = number(root / "proc/sys/kernel/numa_balancing")
    distances = {
        f"distances_from_{folder.name}": distance
        for folder in sorted(nodes.glob("node[0-9]*"), key=lambda node: int(node.name[4:]))
        if (distance := read(folder / "distance"))
    }
    policies = sorted({words[1] for line in _lines(root / "proc/self/numa_maps") if len(words := line.split()) > 1})
    return {
        "node_numbers": read(nodes / "online"),
        "with_memory": read(nodes / "has_memory"),
        **distances,
        "AutoNUMA": None if balancing is None else "on" if balancing else "off",
        "memory_policies": policies or None,
        "memory_allowed": status.get("Mems_allowed_list"),
        "processors_allowed": status.get("Cpus_allowed_list"),
    }


def _lines(path: Path) -> list[str]:
    return (read(path) or "").splitlines()


def _kernel(root: Path) -> Facts:
    return {
        "kernel": read(root / "proc/sys/kernel/osrelease") or platform.release(),
        "system": f"{platform.system()} on {platform.machine()}",
        "pagemap": "readable" if os.access(root / "proc/self/pagemap", os.R_OK) else "not readable",
        "free_memory": "reported to the host" if takes_free_memory(root) else "kept",
        "governor": ", ".join(_governors(root)) or None,
    }


_BALLOON, _REPORTING = "0x0005", 5  # the number of memory balloons among virtio devices, and that of the feature


def takes_free_memory(root: Path = ROOT) -> bool:
    """Return whether free memory is reported to a virtual machine's host, which takes it back."""
    devices = (root / "sys/bus/virtio/devices").glob("*")
    return any(
        read(device / "device") == _BALLOON and (read(device / "features") or "")[_REPORTING : _REPORTING + 1] == "1"
        for device in devices
    )


def _governors(root: Path) -> list[str]:
    files = (root / _CPU).glob("cpu[0-9]*/cpufreq/scaling_governor")
    return sorted({governor for file in files if (governor := read(file))})


def _malloc(root: Path) -> Facts:
    maps = {words[5] for line in _lines(root / "proc/self/maps") if len(words := line.split(maxsplit=5)) == 6}
    loaded = sorted(path for path in maps if any(peer in Path(path).name for peer in LIBRARIES))
    tunables = (pair.partition("=") for pair in os.environ.get("GLIBC_TUNABLES", "").split(":"))
    settings = {name: value for name, _, value in tunables if name.startswith("glibc.")}  # the last applies
    steering = ("LD_PRELOAD", "PYTHONMALLOC")
    settings |= {name: value for name, value in sorted(os.environ.items()) if name.startswith((*PREFIXES, *steering))}
    there = {name: library(name) for name in LIBRARIES}
    return {
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "in_use": ", ".join(loaded) or "the C library's own",
        "settings": settings,
        "peers": ", ".join(f"{name} {path.resolve().name if path else 'absent'}" for name, path in there.items()),
    }


def _limits(root: Path) -> Facts:
    """Return the limits of the control group, the inherited soft limits, and the kernel's own; None for no limit."""
    _, group, address_space, data = _firsttouch.memory_bounds()
    return {
        "cgroup_memory_bytes": group and group[0],
        "cgroup_used_bytes": group and group[1],
        "address_space_bytes": address_space and address_space[0],
        "data_bytes": data and data[0],
        "overcommit": number(root / "proc/sys/vm/overcommit_memory"),
        "mappings": number(root / "proc/sys/vm/max_map_count"),
    }


def shown(topic: str, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the facts of a topic as words: a label and a value."""
    none = "none" if topic == "limits" else "unknown"
    for name, value in facts.items():
        label = name.removesuffix("_bytes").replace("_", " ")
        if value is None:
            yield label, none
        elif name.endswith("_bytes"):
            yield label, units.size(value)
        elif isinstance(value, dict):
            pairs = (f"{key}={each}" if topic == "malloc" else f"{key} {each}" for key, each in value.items())
            yield label, ", ".join(pairs) or "none"
        elif isinstance(value, list):
            yield label, " ".join(value) or "none"
        else:
            yield label, str(value)


def describe() -> dict[str, str]:
    """Return the facts that a reader needs to judge figures: those of all topics, by label."""
    return {label: words for topic, facts in look().items() for label, words in shown(topic, facts)}


# --- what the facts mean


def meaning(found: dict[str, Facts], root: Path = ROOT) -> list[str]:
    """Return the conclusions for arrays, as sentences."""
    if sys.platform != "linux":
        return [f"{platform.system()} tells nothing here: firsttouch reads these facts from Linux's /proc and /sys"]
    missing = (("proc", "much of the memory and the limits"), ("sys", "much of the pages and the nodes"))
    said = [  # what is unknown must not read as if there were no problem
        f"/{folder} is missing or not readable: {lacks} is not known"
        for folder, lacks in missing
        if not (root / folder).is_dir()
    ]
    known = (root / _THP).parent.is_dir()
    return [
        *said,
        *_of_pages(found["pages"], found["huge page pools"], found["kernel"], known),
        *_of_numa(found["numa"]),
        *_of_malloc(found["malloc"]),
        *_of_limits(found["limits"]),
    ]


def _of_pages(pages: Facts, pools: Facts, kernel: Facts, known: bool) -> Iterator[str]:
    mode = pages["transparent_huge_pages"]
    if mode is None and known:
        yield "the kernel reports no transparent huge pages: large arrays use small pages"
    elif mode == "never":
        yield (
            "transparent huge pages are off (never): every small page of a new array takes a page fault;"
            " `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` as root turns them on"
        )
    elif mode == "always":
        yield "THP is `always`: arrays get huge pages anyway, and sparsely touched memory may become resident in full"
    if mode in ("madvise", "always") and pages["defrag"] == "never":
        yield "THP defrag is `never`: on a fragmented machine huge pages are not available immediately"
    for size, pool in pools.items():
        if pool["free"]:
            yield f"{pool['free']:,} huge pages of {size} are reserved and free: no other program can use that memory"
    if kernel["free_memory"] != "kept":
        yield (
            "memory that has been free for seconds goes back to the host of this virtual machine, and is slow to touch"
            " again: reusing memory saves more here, and measurements vary more"
        )


def _of_numa(numa: Facts) -> Iterator[str]:
    others = [each for each in numa["memory_policies"] or [] if not each.startswith(("default", "local"))]
    if others:
        yield (
            f"a memory policy was inherited ({', '.join(others)}): it decides on which nodes arrays lie,"
            " as set by numactl or the job launcher"
        )
    if numa["with_memory"] not in (None, "", "0"):
        yield "several NUMA nodes: memory is placed on the node of the thread that touches it first"
        if numa["AutoNUMA"] == "on":
            yield "AutoNUMA is on: the kernel unmaps pages from time to time to find out which node uses them"
        if numa["memory_allowed"] and numa["memory_allowed"] != numa["with_memory"]:
            yield f"a cpuset allows only the memory of nodes {numa['memory_allowed']}"


def _of_malloc(malloc: Facts) -> Iterator[str]:
    settings = malloc["settings"]
    if malloc["in_use"] != "the C library's own":
        yield f"{malloc['in_use']} replaces malloc; under firsttouch it still serves everything but large arrays"
    elif trim := _low_trim_threshold(settings):
        yield (
            f"{trim} is set: glibc then no longer adapts its thresholds to the program, and returns and faults in the"
            " same memory repeatedly; arrays in the pool are not affected"
        )
    if settings.get("glibc.malloc.hugetlb", "0") != "0":
        yield "glibc.malloc.hugetlb is set: malloc itself requests huge pages"
    if settings.get("MALLOC_PERTURB_", "0") != "0" or settings.get("glibc.malloc.perturb", "0") != "0":
        yield "malloc overwrites memory on allocation and free (perturb), which takes time"


def _low_trim_threshold(settings: dict[str, str]) -> str | None:
    """Return the setting that keeps the trim threshold low."""
    for name in ("MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold"):
        try:
            low = int(settings.get(name, ""), 0) < 1 << 25  # glibc itself raises it to at most twice 32 MiB
        except ValueError:
            continue
        if low:
            return f"{name}={settings[name]}"
    return None


def _of_limits(limits: Facts) -> Iterator[str]:
    if (most := limits["cgroup_memory_bytes"]) is not None:
        left = units.size(max(0, most - limits["cgroup_used_bytes"]))
        yield (
            f"the control group is limited to {units.size(most)} ({left} left):"
            " beyond that the kernel kills processes; the pool keeps less idle memory when little is left"
        )
    for name, command in (("address_space_bytes", "ulimit -v"), ("data_bytes", "ulimit -d")):
        if limits[name] is not None:
            limit = units.size(limits[name])
            yield f"{command} is {limit}: reserved but unused memory counts, too; larger arrays fail"
    if limits["overcommit"] == 2:
        yield "overcommit is strict: every mapped byte counts, touched or not, so sparse arrays count in full"


# --- what disturbs a measurement

#: The share of a processor that other programs or the host may take, and of a control group's memory that may be in
#: use, before it is reported.
_LOAD, _STOLEN, _FULL = 0.25, 0.02, 0.9


def cautions(root: Path = ROOT) -> list[str]:
    """Return the conditions that make every measurement here less reliable, as sentences."""
    said: list[str] = []
    governors = [name for name in _governors(root) if name != "performance"]
    if governors:
        said.append(f"the governor {', '.join(governors)} changes the processor's frequency during a measurement")
    thp = chosen(root / _THP / "enabled")
    if thp in ("always", "never"):
        what = {"always": "every program gets them without advice", "never": "no program gets them"}[thp]
        said.append(f"transparent huge pages are on {thp!r}: {what}; figures of machines on 'madvise' will differ")
    if number(root / "proc/sys/kernel/numa_balancing") and len(list((root / _NODES).glob("node[0-9]*"))) > 1:
        said.append("AutoNUMA moves pages between nodes during a measurement")
    if takes_free_memory(root):
        said.append(
            "memory that has been free for seconds comes back from the host: its first touch may take ten times as long"
        )
    _, group, *_ = _firsttouch.memory_bounds()
    if group is not None and group[1] >= _FULL * group[0]:
        said.append(
            f"the control group's memory is {100 * group[1] / group[0]:.0f} % full: pages are reclaimed meanwhile"
        )
    return said


class Watch:
    """Records the state of the machine now; `finish` reports what happened since."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._load = float((read(root / "proc/loadavg") or "0").split()[0])
        self._begun = time.monotonic()
        self._before = self._counters()

    def _counters(self) -> dict[str, int]:
        pages = counts(self._root / "proc/vmstat")
        # cpu user nice system idle iowait irq softirq steal: in hundredths of a second, over all processors
        times = (read(self._root / "proc/stat") or "cpu").splitlines()[0].split()[1:]
        stolen = int(times[7]) if len(times) > 7 else 0
        throttled = counts(self._root / "sys/fs/cgroup/cpu.stat").get("nr_throttled", 0)
        swapped = pages.get("pswpin", 0) + pages.get("pswpout", 0)
        return {"stolen": stolen, "total": sum(map(int, times[:8])), "swapped": swapped, "throttled": throttled}

    def finish(self) -> list[str]:
        """Return one sentence for each disturbance."""
        spent = {name: value - self._before[name] for name, value in self._counters().items()}
        processors = os.cpu_count() or 1
        said: list[str] = []
        if self._load > _LOAD * processors:
            busy = f"the load average was {self._load:.1f} at the start, on {processors} processors"
            said.append(f"other programs were running: {busy}")
        if spent["stolen"] > _STOLEN * max(1, spent["total"]):
            share = 100 * spent["stolen"] / spent["total"]
            said.append(f"the host took {share:.0f} % of the processors' time for others (steal)")
        if spent["swapped"]:
            said.append(f"the machine swapped: {spent['swapped']:,} pages went in or out")
        if spent["throttled"]:
            said.append(f"the control group's processor limit stopped this process {spent['throttled']:,} times")
        return said

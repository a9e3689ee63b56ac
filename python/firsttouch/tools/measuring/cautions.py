"""Conditions that make measurements on this machine less reliable, each as one sentence."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

from firsttouch.tools import host
from firsttouch.tools.measuring import machine
from firsttouch.tools.measuring.machine import cgroup_file, chosen, fields, read
from firsttouch.tools.measuring.statistics import Estimate

#: The share of a processor that other programs or the host may take before it is reported.
LOAD, STOLEN = 0.25, 0.02
#: The difference between two equal contenders that is tolerated.
SPREAD = 0.05
#: A fraction of a control group's memory limit.
FULL = 0.9


def standing(root: Path = Path("/")) -> list[str]:
    """Return the conditions that hold before and during the measurement."""
    said: list[str] = []
    governors = [name for name in machine.governors(root / "sys/devices/system/cpu") if name != "performance"]
    if governors:
        said.append(f"the governor {', '.join(governors)} changes the processor's frequency during a measurement")
    thp = chosen(read(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    if thp in ("always", "never"):
        what = {"always": "every program gets them without advice", "never": "no program gets them"}[thp]
        said.append(f"transparent huge pages are on {thp!r}: {what}; figures of machines on 'madvise' will differ")
    if machine.autonuma(root) == "on" and len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) > 1:
        said.append("AutoNUMA moves pages between nodes during a measurement")
    if host.takes_free_memory(root):
        said.append(
            "memory that has been free for seconds comes back from the host: its first touch may take ten times as long"
        )
    return [*said, *_nearly_full()]


def _nearly_full() -> list[str]:
    bound = machine.cgroup_bound()
    if bound is None or bound[1] < FULL * bound[0]:
        return []
    return [f"the control group's memory is {100 * bound[1] / bound[0]:.0f} % full: pages are reclaimed meanwhile"]


class Watch:
    """Records the state of the machine now; `finish` reports what happened since."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._load = float(read(root / "proc/loadavg", "0").split()[0])
        self._begun = time.monotonic()
        self._before = self._counters()

    def _counters(self) -> dict[str, int]:
        pages = fields(self._root / "proc/vmstat")
        # cpu user nice system idle iowait irq softirq steal: in hundredths of a second, over all processors
        times = read(self._root / "proc/stat", "cpu").splitlines()[0].split()[1:]
        stolen = int(times[7]) if len(times) > 7 else 0
        throttled = fields(cgroup_file("cpu.stat", "") or "").get("nr_throttled", 0)
        swapped = pages.get("pswpin", 0) + pages.get("pswpout", 0)
        return {"stolen": stolen, "total": sum(map(int, times[:8])), "swapped": swapped, "throttled": throttled}

    def finish(self) -> list[str]:
        """Return one sentence for each disturbance."""
        spent = {name: value - self._before[name] for name, value in self._counters().items()}
        processors = os.cpu_count() or 1
        said: list[str] = []
        if self._load > LOAD * processors:
            busy = f"the load average was {self._load:.1f} at the start, on {processors} processors"
            said.append(f"other programs were running: {busy}")
        if spent["stolen"] > STOLEN * max(1, spent["total"]):
            share = 100 * spent["stolen"] / spent["total"]
            said.append(f"the host took {share:.0f} % of the processors' time for others (steal)")
        if spent["swapped"]:
            said.append(f"the machine swapped: {spent['swapped']:,} pages went in or out")
        if spent["throttled"]:
            said.append(f"the control group's processor limit stopped this process {spent['throttled']:,} times")
        return said


def noise(ratio: Estimate) -> float:
    """Return how far two equal contenders are apart: their ratio's distance from 1, or half its interval if larger."""
    return max(ratio.value - 1, 1 / ratio.value - 1, math.sqrt(ratio.high / ratio.low) - 1)


def of_equals(ratio: Estimate) -> list[str]:
    """Return what a contender compared with itself shows."""
    apart = noise(ratio)
    return [f"the machine is noisy: two equal contenders may seem {100 * apart:.0f} % apart"] if apart > SPREAD else []

"""The virtual machines: emulated by qemu in software, so that they run anywhere."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

QEMU = "qemu-system-x86_64"
PATIENCE = 300
"""Seconds until a guest that does not end is given up; they take some twenty."""


@dataclass(frozen=True)
class Machine:
    """Nodes by their megabytes of memory and their number of processors; 0 and 0 is a node that could be plugged in."""

    name: str
    nodes: tuple[tuple[int, int], ...]
    distances: tuple[tuple[int, int, int], ...] = field(default=())
    words: str = ""
    """For the kernel."""

    def command(self, kernel: Path, initramfs: Path) -> list[str]:
        """What starts it."""
        memory = sum(size for size, _ in self.nodes)
        processors = sum(count for _, count in self.nodes)
        command = [QEMU, "-accel", "tcg", "-cpu", "max", "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio"]
        command += ["-smp", str(processors), "-m", f"{memory}M,slots=2,maxmem={memory + 256}M"]
        first = 0
        for number, (size, count) in enumerate(self.nodes):
            node = f"node,nodeid={number}"
            if size:
                command += ["-object", f"memory-backend-ram,id=memory{number},size={size}M"]
                node += f",memdev=memory{number}"
            if count:
                node += f",cpus={first}-{first + count - 1}"
                first += count
            command += ["-numa", node]
        for a, b, far in self.distances:
            command += ["-numa", f"dist,src={a},dst={b},val={far}"]
        command += ["-kernel", str(kernel), "-initrd", str(initramfs)]
        return [*command, "-append", f"console=ttyS0 quiet panic=-1 {self.words}".rstrip()]

    def boot(self, kernel: Path, initramfs: Path) -> str:
        """What it printed until it was off, or until patience ended; the log has it meanwhile."""
        log, late = initramfs.with_suffix(".log"), ""
        command = self.command(kernel, initramfs)
        with log.open("wb") as out:
            try:
                subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=PATIENCE, check=False)
            except subprocess.TimeoutExpired:
                late = f"\nnot off after {PATIENCE} s\n"
        return log.read_text(errors="replace").replace("\r", "") + late


TWO = Machine(
    "two nodes, a huge page of 1 GiB",
    ((2432, 1), (384, 1)),  # whole gibibytes lie beyond the first, where the kernel is
    ((0, 1, 21), (1, 0, 21)),
    "hugepagesz=1G hugepages=1",
)
LARGE = Machine("two nodes, Python and NumPy", ((768, 1), (768, 1)))
FOUR = Machine("three nodes with memory, one without, one offline", ((256, 1), (256, 1), (256, 1), (0, 1), (0, 0)))

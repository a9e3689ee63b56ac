"""The virtual machines: emulated in software, so that they run on other processors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.guests import qemu

if TYPE_CHECKING:
    from pathlib import Path

QEMU = "qemu-system-aarch64"
MEMORY = "6G"
"""More than the 4 GiB that a test requests at once, of which it uses little."""
PATIENCE = 5 * 3600
"""Seconds until a guest that does not end is given up; each program has its own limit."""


@dataclass(frozen=True)
class Machine:
    """A machine by the size of its pages in KiB, and Debian's kernel that has them."""

    pages: int
    package: str

    def command(self, kernel: Path, initramfs: Path) -> list[str]:
        """What starts it, with a processor that has atomic instructions and pages of every size."""
        command = [QEMU, "-M", "virt", "-accel", "tcg,thread=multi", "-cpu", "neoverse-n1", "-smp", "2", "-m", MEMORY]
        command += ["-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio"]
        command += ["-kernel", str(kernel), "-initrd", str(initramfs)]
        return [*command, "-append", "console=ttyAMA0 quiet panic=-1"]

    def boot(self, kernel: Path, initramfs: Path) -> str:
        """What it printed until it was off."""
        return qemu.boot(self.command(kernel, initramfs), self.log(initramfs), PATIENCE)

    def log(self, initramfs: Path) -> Path:
        """Where it writes what it prints."""
        return initramfs.with_name(f"pages-of-{self.pages}k.log")


SUITE = "trixie"
MACHINES = (
    Machine(4, "linux-image-cloud-arm64"),
    Machine(16, "linux-image-arm64-16k"),
)

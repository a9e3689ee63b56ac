"""``python -m tests.numa``: boots machines with several NUMA nodes and runs the tests there, Rust's and Python's."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import time
from pathlib import Path

from tests.guests import kernel
from tests.guests.packages import Packages, Unavailable
from tests.numa import programs
from tests.numa.machines import FOUR, LARGE, QEMU, TWO, Machine

FOLDER = Path("target/numa").resolve()
CLOSING = re.compile(r"^numa: (\d+) passed, (\d+) failed, (\d+) skipped", re.MULTILINE)


def booted(machine: Machine, image: Path, archive: Path) -> bool:
    """Whether every test passed in one machine; what it printed is shown."""
    began = time.monotonic()
    printed = machine.boot(image, archive)
    lines = [line for line in printed.splitlines() if line.startswith(("test ", "nodes ", "numa: "))]
    closing = CLOSING.search(printed)
    fine = closing is not None and int(closing[1]) > 0 and closing[2] == "0"
    print(f"-- {machine.name} ({time.monotonic() - began:.0f} s)", *(lines if fine else [printed[-8000:]]), sep="\n")
    if closing is None:
        print("the machine did not come to its end")
    return fine


def _kernel(folder: Path) -> Path:
    """The kernel that FIRSTTOUCH_KERNEL names, or Debian's for virtual machines."""
    named = os.environ.get("FIRSTTOUCH_KERNEL")
    if named:
        return Path(named)
    if platform.machine() != "x86_64":
        raise Unavailable(f"the guests are x86_64 machines, and this one is {platform.machine()}")
    return kernel.find(folder, "linux-image-cloud-amd64", Packages)


def main() -> int:
    """Run it; 0 where all passed or nothing could be booted."""
    if shutil.which(QEMU) is None:
        print(f"test-numa: skipped, as there is no {QEMU} (Debian: apt-get install qemu-system-x86)")
        return 0
    try:
        image = _kernel(FOLDER / "kernel")
    except Unavailable as why:
        print(f"test-numa: skipped, as there is no kernel for the guests: {why}")
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    archive = FOLDER / "tests.cpio"
    programs.with_rust_tests(archive, kernel.module(FOLDER / "kernel", "brd"))
    results = [booted(machine, image, archive) for machine in (TWO, FOUR)]
    if programs.can_run_python():
        archive = FOLDER / "python.cpio"
        programs.with_python(archive)
        results.append(booted(LARGE, image, archive))
    else:
        print("test-numa: Python's part is skipped, as this Python lacks NumPy or firsttouch")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.numa``: boots machines with several NUMA nodes and runs the tests there, Rust's and Python's."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import time
from pathlib import Path

from tests.numa import programs
from tests.numa.machines import FOUR, LARGE, QEMU, TWO, Machine
from tests.programs import execute

FOLDER = Path("target/numa").resolve()
KERNEL = "linux-image-cloud-amd64"
CLOSING = re.compile(r"^numa: (\d+) passed, (\d+) failed, (\d+) skipped", re.MULTILINE)


class UnavailableError(Exception):
    """What is missing, in words."""


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


def _run(folder: Path, *command: object) -> str:
    if shutil.which(str(command[0])) is None:
        raise UnavailableError(f"no {command[0]} to fetch {KERNEL} with")
    done = execute(*command, cwd=folder, timeout=600)
    if done.returncode != 0:
        raise UnavailableError(f"{' '.join(map(str, command))}: {done.stderr.strip()[-300:]} (apt-get update may help)")
    return done.stdout


def _kernel(folder: Path) -> Path:
    """The kernel that FIRSTTOUCH_KERNEL names, or Debian's for virtual machines, unpacked now or before."""
    if named := os.environ.get("FIRSTTOUCH_KERNEL"):
        return Path(named)
    if platform.machine() != "x86_64":
        raise UnavailableError(f"the guests are x86_64 machines, and this one is {platform.machine()}")
    if not list(folder.glob("boot/vmlinuz-*")):
        folder.mkdir(parents=True, exist_ok=True)
        (wanted, *_) = re.findall(r"Depends: (linux-image-\S+)", _run(folder, "apt-cache", "depends", KERNEL)) or [
            KERNEL
        ]
        _run(folder, "apt-get", "download", "-qq", wanted)
        for package in folder.glob("*.deb"):
            _run(folder, "dpkg-deb", "-x", package, ".")
            package.unlink()
    return max(folder.glob("boot/vmlinuz-*"))


def main() -> int:
    """Run it; 0 where all passed or nothing could be booted."""
    if shutil.which(QEMU) is None:
        print(f"test-numa: skipped, as there is no {QEMU} (Debian: apt-get install qemu-system-x86)")
        return 0
    try:
        image = _kernel(FOLDER / "kernel")
    except UnavailableError as why:
        print(f"test-numa: skipped, as there is no kernel for the guests: {why}")
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    archive = FOLDER / "tests.cpio"
    programs.with_rust_tests(archive, next((FOLDER / "kernel").glob("lib/modules/*/kernel/**/brd.ko"), None))
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

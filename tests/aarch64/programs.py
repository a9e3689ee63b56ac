"""What a guest holds: the Rust test programs, the C library that they need, and a script that runs them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.guests import rust
from tests.guests.initramfs import Initramfs
from tests.guests.packages import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = "aarch64-unknown-linux-gnu"
COMPILER = "aarch64-linux-gnu-gcc"
LIBRARIES = Path("/usr/aarch64-linux-gnu/lib")
NEEDED = ("ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libgcc_s.so.1")
LIMIT = 900
"""Seconds for one program, of which the slowest takes a quarter where nothing else runs."""

#: Not for these machines, by program: tests that are left out of it.
LEFT_OUT: Mapping[str, tuple[str, ...]] = {}

BOOT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo 0 > /proc/sys/kernel/panic_on_oops
ulimit -c 0
export PATH=/bin HOME=/tmp FIRSTTOUCH_TEST_PATIENCE=LIMIT
cd /tmp
echo "pages of $(awk '/KernelPageSize/ {print $2; exit}' /proc/self/smaps) KiB, huge pages of \
$(($(cat /sys/kernel/mm/transparent_hugepage/hpage_pmd_size) >> 20)) MiB"
run() {
    name=$1
    shift
    echo "program $name"
    began=$(date +%s)
    timeout -s KILL LIMIT "/tests/$name" "$@" </dev/null 2>&1
    code=$?
    echo "ended $name $code $(($(date +%s) - began))"
}
"""


def build() -> dict[str, Path]:
    """The test programs, by name."""
    if shutil.which(COMPILER) is None or not (LIBRARIES / "libc.so.6").exists():
        raise Unavailable(
            f"there is no {COMPILER} (Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
        )
    environment = {
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": COMPILER,
        "CC_aarch64_unknown_linux_gnu": COMPILER,
        "JEMALLOC_SYS_WITH_LG_PAGE": "16",  # the largest page that it is to serve: one build runs on smaller ones, too
    }
    # Emulated code is slow: some optimization pays, with the assertions of a debug build.
    profile = ["--config", "profile.dev.opt-level=1", "--config", "profile.dev.debug=0"]
    return rust.programs(
        ["--target", TARGET, "--package", "firsttouch", "--package", "firsttouch-trace", *profile], environment
    )


def pack(archive: Path, programs: Mapping[str, Path], shell: Path) -> None:
    """An archive whose first process runs the programs; `shell`: a static busybox."""
    files = Initramfs()
    files.add("bin/busybox", shell, executable=True)
    for name in NEEDED:
        files.add(f"lib/{name}", (LIBRARIES / name).resolve(), executable=True)
    script = BOOT.replace("LIMIT", str(LIMIT))
    for name, program in sorted(programs.items()):
        files.add(f"tests/{name}", program, executable=True)
        skipped = " ".join(f"--skip {test}" for test in LEFT_OUT.get(name, ()))
        script += f"run {name} {skipped}\n"
    files.add_text("init", script + 'echo "all ended"\npoweroff -f\n', executable=True)
    files.write(archive)

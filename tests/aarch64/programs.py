"""What a guest holds: the Rust test programs, the C library that they need, and a script that runs them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.aarch64 import python
from tests.guests import rust
from tests.guests.initramfs import Initramfs
from tests.guests.packages import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = "aarch64-unknown-linux-gnu"
COMPILER = "aarch64-linux-gnu-gcc"
#: What every guest has of Debian: a shell that needs nothing else, and the C library.
PACKAGES = ("busybox-static", "libc6", "libgcc-s1")
UNNEEDED = ("doc", "gconv", "man", "locale", "lintian", "bash-completion", "gdb")
LIMIT = 3600
"""Seconds for one program."""
PATIENCE = 900
"""Seconds that tests wait for what must happen; emulated processors may stand still for a while."""

#: Not for these machines, by program: tests that are left out of it.
LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "threads": ("pools_come_and_go",),  # counts what was done in two seconds
}
#: By program, what chooses its tests. All 1,891 of `contract` would need up to 20 minutes of processor time.
CHOSEN: Mapping[str, str] = {"contract": "--exact $(half /tests/contract)"}

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
# Debian's kernels make huge pages everywhere, also of what the tests take for base pages.
echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
ulimit -c 0
export PATH=/bin:/usr/bin NO_COLOR=1 HOME=/tmp FIRSTTOUCH_TEST_PATIENCE=PATIENCE
cd /tmp
pages=$(awk '/KernelPageSize/ {print $2; exit}' /proc/self/smaps)
echo "pages of $pages KiB, huge pages of $(($(cat /sys/kernel/mm/transparent_hugepage/hpage_pmd_size) >> 20)) MiB"
# Every other module of a program, the first one with pages of 4 KiB: both machines together run all. What most stand on
# runs on both.
half() {
    "$1" --list --format terse | awk -F: -v odd=$((pages == 4)) '
        /: test$/ { if ($1 != last) n++; last = $1
            if (n % 2 == odd || $1 ~ /^(malloc|pages|pages_thp|pool)$/) print $1 "::" $3 }'
}
run() {
    name=$1
    shift
    echo "program $name"
    began=$(date +%s)
    timeout -s KILL LIMIT "$@" </dev/null 2>&1
    code=$?
    echo "ended $name $code $(($(date +%s) - began))"
}
"""


def build() -> dict[str, Path]:
    """The test programs, by name."""
    if shutil.which(COMPILER) is None or not Path("/usr/aarch64-linux-gnu/lib/libc.so.6").exists():
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


def pack(archive: Path, programs: Mapping[str, Path], root: Path, site: Path | None) -> int:
    """An archive whose first process runs the programs; `root`: unpacked packages; `site`: Python's, if there is one.

    Returns how many programs there are.
    """
    files = Initramfs()
    files.add("bin/busybox", root / "usr/bin/busybox", executable=True)
    files.add("lib/ld-linux-aarch64.so.1", root / "usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1", executable=True)
    files.add_folder("usr", root / "usr", UNNEEDED)
    script = BOOT.replace("=PATIENCE", f"={PATIENCE}").replace("LIMIT", str(LIMIT))
    for name, program in sorted(programs.items()):
        files.add(f"tests/{name}", program, executable=True)
        chosen = " ".join([CHOSEN.get(name, ""), *(f"--skip {test}" for test in LEFT_OUT.get(name, ()))])
        script += f"run {name} /tests/{name} {chosen}\n"
    if site is not None:
        python.add(files, site)
        script += "".join(f"run {name} {command}\n" for name, command in python.COMMANDS.items())
    files.add_text("init", script + 'echo "all ended"\npoweroff -f\n', executable=True)
    files.write(archive)
    return len(programs) + (len(python.COMMANDS) if site is not None else 0)

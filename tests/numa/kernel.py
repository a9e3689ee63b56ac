"""A kernel for the guests: Debian's own for virtual machines, unpacked, not installed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

PACKAGE = "linux-image-cloud-amd64"


class Unavailable(Exception):
    """What is missing, in words."""


def find(folder: Path) -> Path:
    """A kernel below `folder`, brought there if need be, or the one that FIRSTTOUCH_KERNEL names."""
    named = os.environ.get("FIRSTTOUCH_KERNEL")
    if named:
        return Path(named)
    if platform.machine() != "x86_64":
        raise Unavailable(f"the guests are x86_64 machines, and this one is {platform.machine()}")
    if not (found := _unpacked(folder)):
        _download(folder)
        found = _unpacked(folder)
    if not found:
        raise Unavailable(f"there is no kernel in {PACKAGE}")
    return found


def module(folder: Path, name: str) -> Path | None:
    """A module of that kernel, if it was unpacked with it."""
    return next(folder.glob(f"lib/modules/*/kernel/**/{name}.ko"), None)


def _unpacked(folder: Path) -> Path | None:
    return max(folder.glob("boot/vmlinuz-*"), default=None)


def _download(folder: Path) -> None:
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"no {tool} to fetch {PACKAGE} with")
    depends = _run(["apt-cache", "depends", PACKAGE], folder)
    names = re.findall(r"Depends: (linux-image-\S+)", depends)
    if not names:
        raise Unavailable(f"apt knows no {PACKAGE} (apt-get update may help)")
    folder.mkdir(parents=True, exist_ok=True)
    _run(["apt-get", "download", "-qq", names[0]], folder)
    for package in folder.glob("linux-image-*.deb"):
        _run(["dpkg-deb", "-x", str(package), "."], folder)
        package.unlink()


def _run(command: list[str], folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout

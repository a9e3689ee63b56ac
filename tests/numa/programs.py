"""The first process of a guest: the Rust tests, or Python with NumPy and the package."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.numa.initramfs import Initramfs


def libraries(program: Path) -> list[Path]:
    """The shared libraries that a program or library needs, the loader included."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


def with_rust_tests(archive: Path, disk: Path | None = None) -> None:
    """An archive whose first process is the test program; `disk`: the kernel's module for disks in memory."""
    command = ["cargo", "test", "--locked", "--quiet", "--no-run", "--message-format=json"]
    command += ["--profile", "fast", "--package", "firsttouch", "--test", "numa"]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    program = Path(
        next(found for line in said if line.startswith("{") and (found := json.loads(line).get("executable")))
    )
    files = Initramfs()
    files.add("init", program, executable=True)
    for library in libraries(program):
        files.add(str(library), library.resolve(), executable=True)
    if disk is not None:
        files.add(disk.name, disk)
    files.write(archive)


#: What a guest's Python does without.
UNNEEDED = (
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "turtledemo",
    "site-packages",
    "dist-packages",
)
PACKAGES = ("numpy", "numpy.libs", "firsttouch", "_firsttouch_start")


def can_run_python() -> bool:
    """Whether this Python has what the guest's is to have."""
    return all(importlib.util.find_spec(name) is not None for name in ("numpy", "firsttouch"))


def with_python(archive: Path) -> None:
    """An archive whose first process is Python with `guest_python`."""
    files = Initramfs()
    python = Path(sys.executable).resolve()
    needed = [python]
    files.add(str(python), python, executable=True)
    for folder in {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}:
        files.add_folder(str(folder), folder, UNNEEDED)
        needed += folder.glob("lib-dynload/*.so")
    for name in PACKAGES:
        if (package := _package(name)) is not None:
            files.add_folder(f"site/{name}", package, UNNEEDED)
            needed += package.rglob("*.so*")
    for library in {found for program in needed for found in libraries(program)}:
        if not library.is_relative_to("/site") and "numpy.libs" not in library.parts:
            files.add(str(library), library.resolve(), executable=True)
    script = (Path(__file__).parent / "guest_python.py").read_text()
    files.add_text("init", f"#!{python} -ISu\n{script}", executable=True)
    files.write(archive)


def _package(name: str) -> Path | None:
    """Where a package lies; NumPy's libraries lie beside it."""
    if name == "numpy.libs":
        beside = _package("numpy")
        return beside.parent / name if beside and (beside.parent / name).is_dir() else None
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None

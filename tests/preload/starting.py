"""Compiles C programs and starts them with the library preloaded."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from firsttouch.tools import preload
from tests.programs import Finished, execute, quiet

PROGRAMS = Path(__file__).parent / "programs"


class Bench:
    """A folder for what is compiled; each program is compiled once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def compiled(self, name: str, *options: str) -> str:
        """The program of a source file; the test is skipped where it can't be compiled that way."""
        compiler = shutil.which("gcc")
        if compiler is None:
            pytest.skip("no gcc")
        path = self.folder / "-".join([name, *(option.strip("-").replace("/", "_") for option in options)])
        if not path.exists():
            # Without what the compiler knows of malloc and free: that free keeps errno, for example.
            flags = ["-O1", "-Wall", "-fno-builtin", "-Wno-free-nonheap-object", "-rdynamic", *options]
            source = str(PROGRAMS / f"{name}.c")
            done = subprocess.run(
                [compiler, *flags, source, "-o", str(path), "-lpthread"], capture_output=True, text=True
            )
            if done.returncode and any(option.startswith("-fsanitize") for option in options):
                pytest.skip(f"gcc {' '.join(options)} does not work here")
            assert (done.returncode, done.stderr) == (0, "")
        return str(path)


def library() -> str:
    """The library; CI builds it, so where it is missing that is a failure."""
    why = preload.missing()
    assert why is None, why
    return preload.FILE


def start(*command: str, settings: str = "", served: bool = True, **options: Any) -> Finished:
    """Run a command, served by the pool or plainly."""
    env = {"LD_PRELOAD": library(), preload.VARIABLE: settings} if served else {}
    return execute(*command, env=env | options.pop("env", {}), **options)


def output(*command: str, **options: Any) -> str:
    """What a command prints that must end well and quietly."""
    return quiet(start(*command, **options))


def numbers(*command: str, **options: Any) -> list[int]:
    """The numbers that it prints."""
    return [int(word) for word in output(*command, **options).split()]


def has_huge_pages() -> bool:
    """Whether memory gets huge pages where it asks for them."""
    file = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return file.exists() and "[never]" not in file.read_text() and os.sysconf("SC_PAGE_SIZE") == 4096

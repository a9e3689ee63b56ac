"""Compiles C programs and starts them with the library preloaded."""

import os
from pathlib import Path
from typing import Any

from firsttouch.tools import preload
from tests.programs import Finished, compiled, execute, quiet

PROGRAMS = Path(__file__).parent / "programs"


class Bench:
    """A folder for what is compiled; each program is compiled once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def compiled(self, name: str, *options: str) -> str:
        """The program of a source file."""
        path = self.folder / "-".join([name, *(option.strip("-").replace("/", "_") for option in options)])
        if not path.exists():
            # Without what the compiler knows of malloc and free: that free keeps errno, for example.
            flags = ["-O1", "-fno-builtin", "-Wno-free-nonheap-object", "-rdynamic", *options]
            compiled(path, *flags, PROGRAMS / f"{name}.c", "-lpthread", compiler="gcc")
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

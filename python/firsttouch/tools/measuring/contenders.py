"""The contenders of a comparison: environments for one command that differ only in the allocator behind its arrays."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.tools import preload

# Raised so far that glibc neither maps nor trims anything that an experiment requests. Before 2.35 it ignores a
# threshold for mappings above 32 MiB, and keeps its 128 KiB.
TUNED = {
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20 if preload.GLIBC < [2, 35] else 4 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}

# The same as tunables, and with its heap on huge pages.
TUNED_HUGE = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:"
    + ":".join(f"glibc.malloc.{name[7:-1].lower()}={size}" for name, size in TUNED.items())
}

#: Libraries that people preload, and the names of their files in any version.
LIBRARIES = {
    "tcmalloc": "libtcmalloc*.so*",
    "jemalloc": "libjemalloc.so*",
    "mimalloc": "libmimalloc.so*",
    "tbbmalloc": "libtbbmalloc_proxy.so*",
}

#: How the names of the caller's settings begin that would change a contender unnoticed.
_FOREIGN = (
    *("MALLOC_", "MIMALLOC_", "_RJEM_MALLOC_CONF", "TCMALLOC_", "TBB_"),
    *("GLIBC_TUNABLES", "LD_PRELOAD", "FIRSTTOUCH"),
)


@dataclass(frozen=True)
class Contender:
    """A name, its environment, and what it installs: `True` stands for firsttouch's default."""

    name: str
    environment: dict[str, str] = field(default_factory=dict[str, str])
    install: bool | str = False


DEFAULT = Contender("the default")
AGAIN = Contender("the same again")  # for A/A: the difference between two equal contenders
POOL = Contender("pool()", install=True)
PRELOADED = Contender("preloaded pool", {"LD_PRELOAD": preload.FILE}, install=True)
TUNED_GLIBC = Contender("tuned glibc", TUNED)
HUGE_GLIBC = Contender("huge tuned glibc", TUNED_HUGE)

#: Included by `compare --all`, in addition to the pool.
_MORE = ("pool(pages())", "mimalloc()", "jemalloc()")


def library(name: str) -> Path | None:
    """Return the file of a preloadable malloc: the first in the folders of LD_LIBRARY_PATH and of the system."""
    if sys.platform != "linux":  # where wine shows Linux's folders
        return None
    given = [Path(word) for word in os.environ.get("LD_LIBRARY_PATH", "").split(":") if word]
    system = [
        *sorted(Path("/usr/lib").glob("*-linux-gnu*")),
        *map(Path, ("/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib")),
    ]
    files = (min(folder.glob(LIBRARIES[name]), default=None) for folder in (*given, *system))
    return next(filter(None, files), None)


def preloaded() -> tuple[list[Contender], list[str]]:
    """Return the preloadable mallocs found on this machine, and the names of those that are absent."""
    files = {name: library(name) for name in LIBRARIES}
    found = [Contender(name, {"LD_PRELOAD": str(path)}) for name, path in files.items() if path]
    return found, [name for name, path in files.items() if path is None]


def chosen(
    everything: bool, expressions: Sequence[str], any_program: bool = False
) -> tuple[list[Contender], list[str]]:
    """Return the contenders of `compare`, the default and its double first, and what is not installed.

    With `any_program`, the program may be in any language, and contenders differ in malloc itself: a pool behind it
    serves NumPy's arrays as well.
    """
    peers, absent = preloaded() if everything else ([], [])
    named = dict.fromkeys([*(_MORE if everything else ()), *expressions])
    served = [Contender(expression, install=expression) for expression in named if expression != POOL.name]
    mallocs = [TUNED_GLIBC] if preload.GLIBC else []
    if any_program or everything:
        mallocs += [HUGE_GLIBC] if preload.GLIBC else []
        if preload.missing():
            absent = [*absent, os.path.basename(preload.FILE)]
        else:
            mallocs.insert(0, PRELOADED)
    libraries = [Contender(f"{peer.name} preloaded", peer.environment) for peer in peers]
    arrays = [] if any_program and PRELOADED in mallocs else [POOL]
    return [DEFAULT, AGAIN, *arrays, *served, *mallocs, *libraries], absent


def environment(contender: Contender, report: str | None = None) -> dict[str, str]:
    """Return the program's environment: the caller's variables, without those that would configure a contender.

    `report` is a folder: each process of a served program writes a file there.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
    kept.setdefault("PYTHONHASHSEED", "0")  # the order of sets must not differ between runs
    found = {**kept, **contender.environment}
    file = None if report is None else f"{report}/%p.json"
    if contender == PRELOADED:
        found[preload.VARIABLE] = f"quiet=1 json={file}" if file else "quiet=1"
    elif contender.install:
        allocator = contender.install if isinstance(contender.install, str) else None
        settings = {"quiet": True, "allocator": allocator, "json": file}
        found["FIRSTTOUCH_RUN"] = json.dumps({name: value for name, value in settings.items() if value is not None})
    return found


def left_out() -> list[str]:
    """Return the caller's settings that no contender gets."""
    return sorted(name for name in os.environ if name.startswith(_FOREIGN))


def how(contender: Contender, program: Sequence[str], python: bool) -> str:
    """Return the command line of a run under this contender; `python` tells whether the program is Python's."""
    words = shlex.join(program)
    if contender == PRELOADED:
        return f"firsttouch run {'--all ' if python else ''}{words}"
    if contender.install and python:
        option = f"--allocator {shlex.quote(contender.install)} " if isinstance(contender.install, str) else ""
        return f"firsttouch run {option}{words}"
    settings = dict(contender.environment)
    if contender.install:
        settings["FIRSTTOUCH_RUN"] = environment(contender)["FIRSTTOUCH_RUN"]
    variables = "".join(f"{name}={shlex.quote(value)} " for name, value in settings.items())
    return f"{variables}{'python ' if python else ''}{words}"

"""The contenders: processes that differ only in the allocator behind NumPy's arrays."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field, replace
from pathlib import Path


def mmap_threshold(libc: tuple[str, str]) -> int:
    """Return the largest threshold that counts: before 2.35, glibc ignores one above 32 MiB and keeps its 128 KiB."""
    name, version = libc
    numbers = [int(number) for number in version.split(".") if number.isdecimal()]
    return 32 << 20 if name == "glibc" and numbers < [2, 35] else 4 << 30


# Raised so far that glibc neither maps nor trims anything that an experiment requests.
TUNED = {
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(mmap_threshold(platform.libc_ver())),
    "MALLOC_TOP_PAD_": str(64 << 20),
}

# The same as tunables, and with its heap on huge pages.
TUNED_HUGE = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:"
    + ":".join(f"glibc.malloc.{name[7:-1].lower()}={size}" for name, size in TUNED.items())
}

LIBRARIES = {
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2",
    "tbbmalloc": "libtbbmalloc_proxy.so.2",
}

#: How the names of the variables begin that configure glibc's malloc, mimalloc, jemalloc, tcmalloc and tbbmalloc.
PREFIXES = ("MALLOC_", "MIMALLOC_", "_RJEM_MALLOC_CONF", "TCMALLOC_", "TBB_MALLOC_")

# Settings of the caller's that would change a contender unnoticed.
FOREIGN = (*PREFIXES, "GLIBC_TUNABLES", "LD_PRELOAD", "FIRSTTOUCH", "TBB_")


@dataclass(frozen=True)
class Contender:
    """A name, its environment, and what it installs: `True` stands for firsttouch's default."""

    name: str
    environment: dict[str, str] = field(default_factory=dict[str, str])
    install: bool | str = False

    def under(self, environment: dict[str, str]) -> Contender:
        """Return the same contender with more variables set."""
        return replace(self, environment={**self.environment, **environment})

    def full_environment(self) -> dict[str, str]:
        """Return the environment of the process; BLAS uses one thread, so that runs are repeatable."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        fixed = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        return {**kept, **fixed, **self.environment}


NUMPY = Contender("NumPy")
TUNED_GLIBC = Contender("tuned glibc", TUNED)
HUGE_GLIBC = Contender("tuned glibc, huge pages", TUNED_HUGE)
FIRSTTOUCH = Contender("firsttouch", install=True)


def library(name: str) -> Path | None:
    """Return the file of a preloadable malloc, as installed by Debian and its derivatives."""
    folders = [Path("/usr/local/lib"), Path("/usr/lib64"), Path("/usr/lib"), Path("/lib")]
    folders[:0] = sorted(Path("/usr/lib").glob("*-linux-gnu*"))
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def preloaded() -> tuple[list[Contender], list[str]]:
    """Return the preloadable mallocs found on this machine, and the names of those that are absent."""
    found: list[Contender] = []
    absent: list[str] = []
    for name, file in LIBRARIES.items():
        path = library(file)
        if path is None:
            absent.append(name)
        else:
            found.append(Contender(name, {"LD_PRELOAD": str(path)}))
    return found, absent

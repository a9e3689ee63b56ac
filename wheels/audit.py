"""Audits what would be published: platform tags that hold for every file, complete contents, a readme that renders."""

from __future__ import annotations

import re
import tarfile
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING

from wheels import elf
from wheels.build import LIBRARY
from wheels.steps import FailedError, run, say, tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Libraries of the C library, and of its compiler, that every manylinux and musllinux system has.
_PARTS = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1")
_GLIBC = {*_PARTS, "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
_MUSL = {"libc.so", "libc.musl-x86_64.so.1"}

_IN_EVERY_WHEEL = {
    "_firsttouch_start/__init__.py",
    "firsttouch/__init__.py",
    "firsttouch/_firsttouch.pyi",
    "firsttouch/py.typed",
    "firsttouch_start.pth",
    "firsttouch_start.start",
}
_IN_THE_SDIST = {"Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "PKG-INFO", "README.md", "pyproject.toml"}
_NOT_TO_BE_PACKED = re.compile(r"\.(so|pyd|pyc|a|o)$|__pycache__|/target/|/\.")


def audit(found: Sequence[Path]) -> None:
    """Audit each file; the first fault ends it."""
    say("== audit")
    for path in found:
        problems = _of_wheel(path) if path.suffix == ".whl" else _of_sdist(path)
        if problems:
            raise FailedError("\n    ".join([f"audit: {path.name}:", *problems]))
        say(f"   {path.name}: no fault")
    run([tool("twine"), "check", "--strict", *found], "check the metadata")


def _of_wheel(path: Path) -> list[str]:
    problems = []
    tag = path.stem.rpartition("-")[2]
    with zipfile.ZipFile(path) as wheel:
        names = {name.removeprefix(f"{'-'.join(path.stem.split('-')[:2])}.data/purelib/") for name in wheel.namelist()}
        problems += [f"lacks {name}" for name in sorted(_IN_EVERY_WHEEL - names)]
        native = [name for name in wheel.namelist() if re.search(r"\.so[.\d]*$", name)]
        for name in native:
            problems += [f"{name}: {fault}" for fault in faults(elf.needs(BytesIO(wheel.read(name))), name, tag)]
    expected = 1 + tag.startswith("manylinux")
    if len(native) != expected:
        problems.append(f"holds {native}, where {expected} are expected")
    if not tag.startswith("musllinux"):  # auditwheel knows musl's libc.so by Alpine's name alone
        said = run([tool("auditwheel"), "show", path], f"audit {path.name}")
        if not any(f'platform tag: "{alias}"' in " ".join(said.split()) for alias in tag.split(".")):
            problems.append(f"auditwheel does not agree with its tag:\n{said}")
    return problems


def faults(needed: elf.Needs, name: str, tag: str) -> list[str]:
    """Return what a file for the loader demands beyond what the wheel's platform tag promises."""
    problems = []
    promised = re.search(r"manylinux_(\d+)_(\d+)", tag)
    glibc = (int(promised[1]), int(promised[2])) if promised else (0, 0)
    if needed.glibc > glibc:
        problems.append(f"needs symbols of glibc {needed.glibc[0]}.{needed.glibc[1]}, but {tag} promises less")
    strange = needed.libraries - (_GLIBC if promised else _MUSL)
    if strange:
        problems.append(f"needs {', '.join(sorted(strange))}")
    if promised and not name.endswith(LIBRARY) and "libgcc_s.so.1" not in needed.libraries:
        problems.append(
            "brings an unwinder of its own: a daemon thread that CPython ends with pthread_exit would crash in it"
        )
    if name.endswith(LIBRARY) and not needed.initfirst:
        problems.append("its constructors would not run first (DF_1_INITFIRST)")
    return problems


def _of_sdist(path: Path) -> list[str]:
    with tarfile.open(path) as contents:
        names = {name.partition("/")[2] for name in contents.getnames()}
    problems = [f"lacks {name}" for name in sorted(_IN_THE_SDIST - names)]
    return problems + [f"holds {name}" for name in sorted(names) if _NOT_TO_BE_PACKED.search(f"/{name}")]

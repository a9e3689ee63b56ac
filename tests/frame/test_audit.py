"""`make wheels`: the audit of shared libraries, on the one that was built for this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("elftools")

from firsttouch.tools import preload
from wheels import audit, elf

OLD = "manylinux2014_x86_64.manylinux_2_17_x86_64"

pytestmark = pytest.mark.skipif(preload.missing() is not None, reason="there is no library to audit")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return Path(shutil.copy(preload.FILE, tmp_path))


def needs(path: Path) -> elf.Needs:
    with path.open("rb") as file:
        return elf.needs(file)


def test_what_the_library_needs_is_read(library: Path) -> None:
    needed = needs(library)
    assert "libc.so.6" in needed.libraries
    assert needed.glibc >= (2, 17)
    assert needed.initfirst, "-z initfirst, or elf.set_initfirst where zig linked"
    newest = f"manylinux_{needed.glibc[0]}_{needed.glibc[1]}_x86_64"
    assert audit.faults(needed, library.name, newest) == []


@pytest.mark.parametrize(
    ("needed", "tag", "said"),
    [
        (elf.Needs(frozenset({"libc.so.6"}), (2, 34), True), OLD, "glibc 2.34"),
        (elf.Needs(frozenset({"libc.so.6"}), (2, 17), False), OLD, "DF_1_INITFIRST"),
        (elf.Needs(frozenset({"libstdc++.so.6"}), (2, 17), True), OLD, "libstdc++.so.6"),
        (elf.Needs(frozenset({"libc.so.6"}), (0, 0), True), "musllinux_1_2_x86_64", "libc.so.6"),
        (elf.Needs(frozenset({"libc.so"}), (2, 2), True), "musllinux_1_2_x86_64", "glibc 2.2"),
    ],
)
def test_demands_beyond_the_tag_are_faults(needed: elf.Needs, tag: str, said: str) -> None:
    (fault,) = audit.faults(needed, preload.FILE.name, tag)
    assert said in fault


def test_a_module_with_its_own_unwinder_is_faulty() -> None:
    own = elf.Needs(frozenset({"libc.so.6"}), (2, 17), False)
    (fault,) = audit.faults(own, "firsttouch/_firsttouch.abi3.so", OLD)
    assert "unwinder" in fault
    assert audit.faults(own._replace(libraries=own.libraries | {"libgcc_s.so.1"}), "_firsttouch.abi3.so", OLD) == []


def test_the_flag_that_zig_cannot_set_is_set_and_nothing_else(library: Path) -> None:
    before = library.read_bytes()
    with library.open("r+b") as file:
        at = _flag_at(library)
        file.seek(at)
        file.write(bytes([before[at] & ~elf.INITFIRST]))
    assert not needs(library).initfirst
    elf.set_initfirst(library)
    assert library.read_bytes() == before


def _flag_at(path: Path) -> int:
    """The lowest byte of DT_FLAGS_1, which follows its tag."""
    tag = (0x6FFFFFFB).to_bytes(8, "little")
    return path.read_bytes().index(tag) + 8

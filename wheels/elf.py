"""What wheels hold for the dynamic loader: which C library a file needs, and the flag that zig cannot set."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, NamedTuple

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

if TYPE_CHECKING:
    from pathlib import Path

#: Our constructors run before every other's (elf.h: DF_1_INITFIRST).
INITFIRST = 0x20


class Needs(NamedTuple):
    """What the loader must find for a file."""

    libraries: frozenset[str]
    #: The newest version of glibc's symbols; (0, 0) if it names none.
    glibc: tuple[int, int]
    initfirst: bool


def needs(file: IO[bytes]) -> Needs:
    """Read what a shared library needs."""
    elf = ELFFile(file)
    versions = [(0, 0)]
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            names = [name.name for _, entries in section.iter_versions() for name in entries]
            found = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)[.\d]*", name) for name in names]
            versions += [(int(match[1]), int(match[2])) for match in found if match]
    tags = list(_dynamic(elf).iter_tags())
    return Needs(
        frozenset(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),  # type: ignore[attr-defined]
        max(versions),
        any(tag.entry.d_tag == "DT_FLAGS_1" and bool(tag.entry.d_val & INITFIRST) for tag in tags),
    )


def set_initfirst(path: Path) -> None:
    """Set the flag in a finished file, as `-z initfirst` does where the linker has it. -z nodelete made the entry."""
    with path.open("r+b") as file:
        section = _dynamic(ELFFile(file))
        for index, tag in enumerate(section.iter_tags()):
            if tag.entry.d_tag == "DT_FLAGS_1":
                file.seek(section["sh_offset"] + index * section["sh_entsize"] + 8)  # 64-bit: the tag, then its value
                file.write((tag.entry.d_val | INITFIRST).to_bytes(8, "little"))
                return
    raise ValueError(f"{path} has no entry DT_FLAGS_1")


def _dynamic(elf: ELFFile) -> DynamicSection:
    section = elf.get_section_by_name(".dynamic")
    if not isinstance(section, DynamicSection):
        raise TypeError("not a shared library")
    return section

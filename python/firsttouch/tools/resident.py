"""The resident memory of a process: its mappings, their pages, and what allocators keep in them.

All of it is read from outside, without stopping the process: sums come from ``/proc/PID/smaps``, in which each page
counts once, and are split by what is known of the addresses. The lines come from the table of live blocks that a
process publishes which `firsttouch why` or `run --lines` has started (crates/firsttouch-trace/src/live.rs).
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from firsttouch import _firsttouch

Addresses = npt.NDArray[np.int64]

#: Groups of parts, with what they are called.
ARRAYS = "arrays, by the line that made them"
BUFFERS = "other large Python objects, by line"
IDLE = "idle in firsttouch's pool"
POOL = "arrays in firsttouch's pool, and what is idle there"
OBJECTS = "Python's small objects"
MALLOC = "malloc of the C library"
ALLOCATORS = "other allocators"
LIBRARIES = "programs and shared libraries"
FILES = "mapped files"
SHARED = "shared memory"
STACKS = "stacks of threads"
OTHER = "mapped by the program or its libraries"
OWN = "firsttouch's own records"

#: The part of OWN.
TABLE = "table of live blocks"
#: Parts of MALLOC and OBJECTS.
IN_USE, LARGE = "blocks in use", "large blocks in use, each mapped by itself"
GAPS, TOP = "free between blocks that are in use", "free at the end of its heaps"
LIVE, GAPS_OF_OBJECTS = "live", "free between live ones"

#: Where segments of pools may begin, in a process with a library of ours: the kernel places nothing there by itself,
#: but V8 asks for such addresses, too.
_SEGMENTS = range(*_firsttouch.SEGMENTS)
_OURS = re.compile(r"firsttouch[^/\n]*\.so")
#: A mapping in /proc/PID/smaps: its addresses, access and file, and what of it is resident, in KiB.
_MAPPING = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)\n(?:[A-Z].*\n)*?Rss: +([0-9]+)", re.MULTILINE)
_SHARED = re.compile(rb"^Shared_(?:Clean|Dirty): +([0-9]+)", re.MULTILINE)
#: The bit of a line that says that the block is for no array (live.rs).
_NO_ARRAY = 1 << 62
#: The words of the table's first page, and where its lines and its rows begin.
_HEADER, _TEXT, _ROWS, _ROW = struct.Struct("=6Q"), 4 << 10, 1 << 20, 24
_MAGIC = int.from_bytes(b"FTlive\x02\0", "little")
_ENDING = 4
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: How often a process is read whose memory changed meanwhile: by so much, or by this part of the kernel's count.
_TRIES, _MUCH, _OFF = 4, 1 << 20, 0.02
#: A heap of a thread's arena begins at a multiple of this.
_ARENA = 64 << 20
#: A larger inaccessible range before memory is no guard of a stack.
_MOST_GUARD = 64 << 10
#: Larger memory after a library's own is not its variables alone: the kernel joins what is mapped next to them.
_MOST_ZEROS = 1 << 20
#: Libraries with allocators of their own, by their files.
_ALLOCATORS = {
    r"libarrow\.so": "Arrow's pool",
    r"jemalloc": "jemalloc",
    r"mimalloc": "mimalloc",
    r"tcmalloc": "tcmalloc",
    r"libtorch_cpu": "PyTorch",
    r"libjax_common|xla_extension": "JAX",
    r"/(node|libnode.*|electron|chrome)$": "V8",
    r"libjvm\.so": "Java",
}
#: Allocators among these that replace the C library's malloc.
_REPLACEMENTS = ("jemalloc", "mimalloc", "tcmalloc")


@dataclass
class Part:
    """Some of the memory of a process, in bytes."""

    group: str
    what: str
    resident: int = 0
    blocks: int = 0
    untouched: int = 0
    """Allocated or mapped, but without memory behind it: never written."""
    zero_page: int = 0
    """The part of that which was read: the kernel's zero page is there."""


@dataclass
class Look:
    """A process at one moment; bytes."""

    parts: list[Part]
    counted: int
    """The kernel's count of resident bytes: the sum of the parts, but for changes meanwhile."""
    peak: int
    """The most that was resident so far."""
    shared: int
    """The part that other processes have in their memory, too: libraries, and pages from before a fork."""
    page_tables: int
    swapped: int
    threads: int
    children: dict[int, int]
    """What child processes have resident, by their numbers."""
    lines_of: Literal["all arrays", "later arrays", "no arrays"]
    notes: list[str] = field(default_factory=list[str])

    @property
    def resident(self) -> int:
        """The sum of the parts."""
        return sum(part.resident for part in self.parts)

    def of(self, group: str, what: str | None = None) -> int:
        """Return the resident bytes of a group, or of a part of it."""
        return sum(part.resident for part in self.parts if part.group == group and what in (None, part.what))


@dataclass
class _Mapping:
    start: int
    end: int
    access: str
    path: str
    resident: int

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def is_anonymous(self) -> bool:
        return not self.path and self.access.endswith("p")

    def continues(self, before: _Mapping) -> bool:
        """Whether only advice to the kernel parts it from the one before."""
        are_alike = self.is_anonymous and before.is_anonymous and self.access == before.access
        return are_alike and before.end == self.start

    def is_guard_of(self, after: _Mapping) -> bool:
        """Whether it is the inaccessible page before a stack."""
        is_small = self.size <= _MOST_GUARD and self.access.startswith("---")
        return is_small and self.is_anonymous and self.end == after.start


class Process:
    """A process that is looked at, with its table of live blocks if it has one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._table: int | None = None
        self.is_late = False

    def table(self) -> int | None:
        """Return the table, which is among the files of the process, if it records lines."""
        if self._table is not None:
            return self._table
        folder = f"/proc/{self.number}/fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                if os.readlink(f"{folder}/{name}").startswith("/memfd:firsttouch-live"):
                    table = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CLOEXEC)
                    # Its own: a forked process has its parent's table, too, and in a container another number.
                    start = os.pread(table, _HEADER.size, 0).ljust(_HEADER.size, b"\0")  # it may be a moment old
                    if _HEADER.unpack(start)[:2] == (_MAGIC, self._status()["NSpid"]):
                        self._table = table
                        break
                    os.close(table)
        return self._table

    def close(self) -> None:
        """Close the table."""
        if self._table is not None:
            os.close(self._table)
            self._table = None

    @property
    def is_ending(self) -> bool:
        """Whether the process waits for a last look before it ends."""
        table = self.table()
        return table is not None and os.pread(table, 8, 8 * _ENDING) == struct.pack("=Q", 1)

    def let_end(self) -> None:
        """Let it end, after that look."""
        if self._table is not None:
            os.pwrite(self._table, struct.pack("=Q", 2), 8 * _ENDING)

    def _blocks(self) -> tuple[Addresses, list[str], int]:
        """Return the live blocks (address, end, line), the lines, and the number of blocks that found no room.

        Blocks are in the order of addresses. The first line stands for unknown ones.
        """
        table = self.table()
        if table is None:
            return np.zeros((0, 3), np.int64), [], 0
        _, _, text, lost, _, self.is_late = _HEADER.unpack(os.pread(table, _HEADER.size, 0))
        rows = np.frombuffer(b"".join(_rows(table)), np.int64).reshape(-1, 3)
        rows = rows[rows[:, 0] != 0]
        rows = rows[np.unique(rows[:, 0], return_index=True)[1]]
        _share_lines(rows)
        rows[:, 1] += rows[:, 0]
        lines = os.pread(table, text, _TEXT).decode(errors="replace").split("\n")
        return rows, ["whose line is not known", *lines[:-1]], lost

    def _status(self) -> dict[str, int]:
        """Return the figures of /proc/PID/status: sizes in bytes, and numbers, the last one where there are more."""
        with open(f"/proc/{self.number}/status", encoding="utf-8", errors="replace") as file:
            found = re.findall(r"^(\w+):\t.*?(\d+)( kB)?$", file.read(), re.MULTILINE)
        return {name: int(number) << (10 if unit else 0) for name, number, unit in found}

    def size(self) -> int:
        """Return the resident bytes, roughly; 0 if the process is gone."""
        try:
            with open(f"/proc/{self.number}/statm", "rb") as file:
                return int(file.read().split()[1]) * _PAGE
        except OSError:
            return 0

    def command(self) -> str:
        """Return its command line, with spaces between the words."""
        with open(f"/proc/{self.number}/cmdline", "rb") as file:
            return " ".join(os.fsdecode(word) for word in file.read().split(b"\0")).strip()

    def _children(self) -> list[int]:
        """Return the processes that it has started and that still run."""
        try:
            threads = os.listdir(f"/proc/{self.number}/task")
            texts = [open(f"/proc/{self.number}/task/{thread}/children").read() for thread in threads]  # noqa: SIM115
        except OSError:
            return []
        return [int(word) for text in texts for word in text.split()]

    def _mappings(self) -> tuple[list[_Mapping], int]:
        """Return the mappings in order, and the resident bytes that other processes have, too."""
        with open(f"/proc/{self.number}/smaps", "rb") as file:
            text = file.read()
        mappings: list[_Mapping] = []
        for start, end, access, path, kib in _MAPPING.findall(text):
            mapping = _Mapping(int(start, 16), int(end, 16), access.decode(), os.fsdecode(path), int(kib) << 10)
            last = mappings[-1] if mappings else None
            is_stack = len(mappings) > 1 and mappings[-2].is_guard_of(mappings[-1])
            # NumPy advises huge pages for arrays of 4 MiB and more: their headers lie in the mapping before.
            if last and mapping.continues(last) and not is_stack:
                last.end = mapping.end
                last.resident += mapping.resident
            else:
                mappings.append(mapping)
        if not mappings:
            raise ProcessLookupError(f"process {self.number} has ended")
        return mappings, sum(map(int, _SHARED.findall(text))) << 10

    def look(self) -> Look:
        """Return what the resident memory is now. Raises OSError if the process has ended, or is another user's.

        Where it changed while it was read, it is read again, a few times.
        """
        for _ in range(_TRIES):
            look, is_stale = self._look()
            if not is_stale and abs(look.resident - look.counted) <= look.counted * _OFF:
                break
        return look

    def _look(self) -> tuple[Look, bool]:
        (mappings, shared), status = self._mappings(), self._status()
        blocks, lines, lost = self._blocks()  # afterwards: what is resident of a new array has its line
        sorting = _Sorting(self, blocks, lines, mappings)
        look = Look(
            sorting.parts(),
            counted=status.get("VmRSS", 0),
            peak=status.get("VmHWM", 0),
            shared=shared,
            page_tables=status.get("VmPTE", 0),
            swapped=status.get("VmSwap", 0),
            threads=status.get("Threads", 1),
            children={child: Process(child).size() for child in self._children()},
            lines_of="all arrays" if sorting.has_all else "later arrays" if self.is_late else "no arrays",
        )
        notes = {
            "the memory of the process may not be read (ptrace), so what malloc and Python hold is not told apart": (
                sorting.is_closed
            ),
            f"{lost:,} blocks found no room in the table of lines": lost,
            "lines are known of arrays that were made under firsttouch run --lines, or after firsttouch why --lines": (
                not sorting.has_all and (sorting.has_pool or self.is_late)
            ),
        }
        look.notes += [note for note, applies in notes.items() if applies]
        return look, sorting.is_stale


class _Ranges:
    """Resident ranges of addresses, in order."""

    def __init__(self, pairs: bytes) -> None:
        self._starts, self._ends = np.frombuffer(pairs, np.int64).reshape(-1, 2).T
        self._before = np.concatenate([[0], np.cumsum(self._ends - self._starts)])

    def below(self, addresses: Addresses) -> Addresses:
        """Return how many bytes are resident below each address."""
        at = np.searchsorted(self._starts, addresses, "right") - 1
        inside = np.minimum(addresses, self._ends[at]) - self._starts[at] if len(self._starts) else 0
        return np.where(at < 0, 0, self._before[at] + inside)


@dataclass
class _Stretch:
    """A stretch of a mapping, and what of it is something else of the same group: free memory."""

    end: int
    group: str
    what: str
    free: dict[str, int] = field(default_factory=dict[str, int])


class _Sorting:
    """Sorts the memory of one process into parts."""

    def __init__(self, process: Process, blocks: Addresses, lines: list[str], mappings: list[_Mapping]) -> None:
        self._process, self._blocks, self._lines, self._mappings = process.number, blocks, lines, mappings
        self._parts: dict[tuple[str, str], Part] = {}
        self._programs = {each.path for each in mappings if "x" in each.access and each.path.startswith("/")}
        loaded = "\n".join(self._programs)
        self._allocator = " or ".join(
            name for pattern, name in _ALLOCATORS.items() if re.search(pattern, loaded, re.MULTILINE)
        )
        self.is_closed = self.is_stale = False
        self.has_all = bool(lines) and not process.is_late
        self.has_pool = bool(_OURS.search(loaded)) and any(each.start in _SEGMENTS for each in mappings)

    def parts(self) -> list[Part]:
        """Sort all mappings; return the parts, the largest first."""
        for at, mapping in enumerate(self._mappings):
            before = self._mappings[at - 1] if at else None
            after = self._mappings[at + 1] if at + 1 < len(self._mappings) else None
            group, what = self._kind(mapping, before, after)
            first = np.searchsorted(self._blocks[:, 1], mapping.start, "right")
            last = np.searchsorted(self._blocks[:, 0], mapping.end)
            if first == last and (not mapping.resident or group not in (MALLOC, OTHER)):
                is_reserved = mapping.access.startswith("---")  # and nobody's yet
                self._add(group, what, mapping.resident, 0 if is_reserved else mapping.size - mapping.resident)
            else:
                self._split(mapping, group, what, self._blocks[first:last])
        return sorted(self._parts.values(), key=lambda part: -part.resident)

    def _add(
        self, group: str, what: str, resident: float, untouched: float = 0, zero: float = 0, blocks: int = 0
    ) -> None:
        part = self._parts.setdefault((group, what), Part(group, what))
        part.resident += round(resident)
        part.untouched += round(untouched)
        part.zero_page += round(zero)
        part.blocks += blocks

    def _kind(self, mapping: _Mapping, before: _Mapping | None, after: _Mapping | None) -> tuple[str, str]:
        """Return the group of a mapping, and its name where it is not split further."""
        path = mapping.path.removesuffix(" (deleted)")
        if path.startswith("/memfd:firsttouch-live"):
            return OWN, TABLE
        is_memory = path.startswith(("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"))
        if mapping.access.endswith("s") or is_memory:
            return (SHARED if is_memory or not path else FILES), path or "without a name"
        if path in self._programs or path.startswith("[v"):
            return LIBRARIES, _package(path)
        if path == "[stack]":
            return STACKS, "of the main thread"
        if path == "[heap]":
            return MALLOC, IN_USE
        if path and not path.startswith("["):
            return (LIBRARIES, _package(path)) if path.endswith(".so") else (FILES, path)
        if self.has_pool and _SEGMENTS.start <= mapping.start < _SEGMENTS.stop:
            return (IDLE, IDLE) if self.has_all else (POOL, POOL)
        if mapping.access.startswith("---"):
            return OTHER, "reserved addresses"
        if before is not None and before.end == mapping.start:
            if before.path in self._programs and "w" in before.access and mapping.size <= _MOST_ZEROS:
                return LIBRARIES, _package(before.path)  # variables that begin as zero
            if before.is_guard_of(mapping):
                return STACKS, "of other threads"
        tail = 0 if after is None or after.start != mapping.end or not after.access.startswith("---") else after.size
        if mapping.start % _ARENA == 0 and (mapping.size + tail) % _ARENA == 0 and tail:
            return MALLOC, IN_USE  # if its memory cannot be read, which would tell more
        return OTHER, OTHER

    def _split(self, mapping: _Mapping, group: str, what: str, blocks: Addresses) -> None:
        """Sort the pages of a mapping into its blocks with lines, and what else lies in it."""
        inside = mapping.path == "[heap]" if group in (MALLOC, OTHER) and mapping.resident else None
        (pairs, zeros), found, is_stale = _firsttouch.contents_of_mapping(
            self._process, mapping.start, mapping.end, inside
        )
        below, zeros_below = _Ranges(pairs).below, _Ranges(zeros).below
        present = float(below(np.array([mapping.end]))[0])
        self.is_stale |= is_stale or mapping.resident - present > _MUCH
        # Where the kernel does not tell the zero page, and where the process goes on meanwhile, they differ a little.
        scale = mapping.resident / present if present else 0.0
        starts, ends = np.maximum(blocks[:, 0], mapping.start), np.minimum(blocks[:, 1], mapping.end)
        there = (below(ends) - below(starts)) * scale
        for line in np.unique(blocks[:, 2]):
            mine = blocks[:, 2] == line
            resident, size = float(there[mine].sum()), float((ends - starts)[mine].sum())
            zero = float((zeros_below(ends) - zeros_below(starts))[mine].sum())
            begun = int((mine & (blocks[:, 0] == starts)).sum())  # the others in a mapping before
            self._add(*self._line(int(line)), resident, size - resident, zero, begun)
        if found is None:
            self.is_closed = True
        stretches = [_Stretch(mapping.end, group, what)]
        if inside is not None and found is not None:
            stretches = self._stretches(mapping, found)
        edges = np.array([mapping.start, *(stretch.end for stretch in stretches)])
        of_blocks = np.bincount(np.searchsorted(edges, starts, "right") - 1, there, len(stretches))
        present_here, zero_here = np.diff(below(edges)) * scale - of_blocks, np.diff(zeros_below(edges))
        for stretch, size, resident, zero in zip(stretches, np.diff(edges), present_here, zero_here, strict=True):
            free = sum(stretch.free.values())
            gone = min(free, max(resident, 0.0))
            if size:
                absent = (0, 0) if len(blocks) else (max(size - resident, 0.0), zero)
                self._add(stretch.group, stretch.what, resident - gone, *absent)
            for name, freed in stretch.free.items():
                self._add(stretch.group, name, freed * gone / max(free, 1))

    def _line(self, number: int) -> tuple[str, str]:
        """Return the group of a block, and the line that made it."""
        line = number % _NO_ARRAY
        return BUFFERS if number & _NO_ARRAY else ARRAYS, self._lines[line if line < len(self._lines) else 0]

    def _stretches(self, mapping: _Mapping, found: list[dict[str, Any]]) -> list[_Stretch]:
        """Return what lies in a mapping, in order."""
        unknown = (ALLOCATORS, self._allocator) if self._allocator else (OTHER, OTHER)
        replaced = next((name for name in _REPLACEMENTS if name in self._allocator), None)
        if mapping.path == "[heap]" and replaced is not None:
            return [_Stretch(mapping.end, ALLOCATORS, replaced)]
        stretches: list[_Stretch] = []
        for part in found:
            stretches.append(_Stretch(part["start"], *unknown))
            end = part["start"] + part["size"]
            if part["kind"] == "objects":
                stretches.append(_Stretch(end, OBJECTS, LIVE, {GAPS_OF_OBJECTS: part["free"]}))
            else:
                what = IN_USE if part["kind"] == "heap" else LARGE
                stretches.append(_Stretch(end, MALLOC, what, {GAPS: part["free"], TOP: part["top"]}))
        return [*stretches, _Stretch(mapping.end, *unknown)]


def _rows(table: int) -> Iterator[bytes]:
    """Yield the rows of a table in the pages that exist; a row that only begins or ends in one was never used."""
    end = _ROWS
    with contextlib.suppress(OSError):  # nothing more exists
        while True:
            start = os.lseek(table, end, os.SEEK_DATA)
            end = os.lseek(table, start, os.SEEK_HOLE)
            start += (_ROWS - start) % _ROW
            yield os.pread(table, (end - start) // _ROW * _ROW, start)


def _share_lines(rows: Addresses) -> None:
    """Give small blocks without a line the lines of sampled ones of the same kind and about the same size, in turn."""
    sizes, has_line = rows[:, 1], rows[:, 2] % _NO_ARRAY != 0
    keys = sizes + (rows[:, 2] & _NO_ARRAY)
    sampled, others = (np.flatnonzero((sizes < _firsttouch.LINES_FROM) & which) for which in (has_line, ~has_line))
    if len(sampled):
        sampled = sampled[np.argsort(keys[sampled], kind="stable")]
        first = np.minimum(np.searchsorted(keys[sampled], keys[others]), len(sampled) - 1)
        count = np.maximum(np.searchsorted(keys[sampled], keys[others], "right") - first, 1)
        rows[others, 2] += rows[sampled[first + np.arange(len(others)) % count], 2] % _NO_ARRAY


def _package(path: str) -> str:
    """Return the package that a library belongs to, or else the name of its file."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.split(folder, 1)[1].split("/")[0].removesuffix(".libs")
    return os.path.basename(path)

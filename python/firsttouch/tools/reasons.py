"""What resident memory is, in words and a table: see `resident.py` for where the figures come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TextIO

from firsttouch._internal import units
from firsttouch.tools import resident
from firsttouch.tools.cli import output
from firsttouch.tools.measuring.report import Picture, Table
from firsttouch.tools.resident import Look, Part

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIB = 1 << 20
#: Parts below this share of all, and those beyond so many in a group, are left out of the table.
_LITTLE, _SHOWN = 0.005, 10
#: Memory that is allocated but not resident is listed from this size on; in some groups it tells nothing.
_MUCH = 16 * _MIB
_NEVER_FULL = (resident.IDLE, resident.POOL, resident.MALLOC, resident.OBJECTS, resident.LIBRARIES, resident.OWN)
#: Memory that is shared with other processes has a note if it is more than this part.
_MUCH_SHARED = 0.25
#: A peak was missed if the process had been so much larger at some time.
_MISSED = 1.02

#: What a part of each group is called, after "is".
_NAMED = {
    resident.ARRAYS: "{made}",
    resident.BUFFERS: "{made} (bytes, strings, lists, dictionaries, ...)",
    resident.OBJECTS: "in the arenas of Python's small objects: {what}",
    resident.MALLOC: "the C library's: {what}",
    resident.ALLOCATORS: "held by {what}",
    resident.LIBRARIES: "the code and data of {what}",
    resident.FILES: "the mapped file {what}",
    resident.SHARED: "shared memory, {what}",
    resident.STACKS: "stacks, {what}; there are {threads}",
}
_BY_LINE = "firsttouch run --lines tells the lines of arrays{to_come}."
_TO_COME = ", and firsttouch why --lines PID those of arrays to come"
#: What would bring memory down, by part, allocator or group. `{size}` and `{to_come}` are filled in.
_ADVICE = {
    resident.IDLE: "It goes back by itself soon; firsttouch.trim() gives it back at once.",
    resident.POOL: _BY_LINE,
    resident.LIVE: "These are numbers, strings, tuples, dictionaries, ... up to 512 bytes each: fewer of them, or"
    " arrays in their place, bring it down.",
    resident.GAPS_OF_OBJECTS: "Python returns it only where all objects of 1 MiB are gone: the few that were made"
    " amid many temporary ones and live on hold it.",
    resident.GAPS: "malloc_trim(0) of the C library returns up to {size} of it; small blocks that live on among"
    " freed ones keep it.",
    resident.TOP: "malloc_trim(0) of the C library returns up to {size} of it.",
    resident.LIBRARIES: "If an import loaded it, doing without that package, or importing it later, saves it.",
    resident.FILES: "These are pages of the file that were read or written through the mapping. The kernel takes"
    " them back when memory gets scarce, so nothing needs to be done; dropping the mapping (del,"
    " close) brings it down.",
    resident.SHARED: "It is counted in each process that maps it, and exists until the last one unmaps it and its"
    " name is unlinked.",
    resident.STACKS: "Fewer threads, or less recursion in them, bring it down.",
    resident.OTHER: "The program or a library mapped it itself (mmap), without malloc: what makes it only that"
    " library can say.",
    "Arrow's pool": "pyarrow.default_memory_pool().release_unused() returns what of it is free, and deleting tables"
    " the rest.",
    "jemalloc": "With MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0 in the environment it returns free memory at once.",
    "mimalloc": "With MIMALLOC_PURGE_DELAY=0 in the environment it returns free memory at once.",
    "tcmalloc": "With TCMALLOC_RELEASE_RATE=10 in the environment it returns free memory sooner.",
    "PyTorch": "Deleting tensors brings it down.",
    "JAX": "Deleting arrays brings it down.",
    "V8": "node --max-old-space-size=MIB bounds it; a heap snapshot (--heapsnapshot-signal=SIGUSR2) names the objects.",
    "Java": "java -XmxSIZE bounds it; jcmd PID GC.class_histogram names the objects.",
}
#: What malloc may have in use for a package. Arrays that firsttouch serves lie elsewhere.
_USERS = {"numpy": "NumPy's arrays", "torch": "PyTorch's tensors", "jaxlib": "JAX's arrays"}


def _place(what: str) -> str:
    """Return file and line as people write it, and anything else as it is."""
    program, comma, library = what.partition(", in ")
    file, colon, line = program.rpartition(":")
    return output.place(file, int(line)) + comma + library if colon and line.isdecimal() else what


_resident, _untouched = attrgetter("resident"), attrgetter("untouched")


@dataclass
class Reasons:
    """A program at its peak and at its end; or, without the latter, a process now."""

    title: str
    peak: Look
    last: Look | None = None
    saw_end: bool = True

    @property
    def cause(self) -> Part:
        """The largest part at the peak."""
        return max(self.peak.parts, key=_resident)

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON; sizes are in bytes."""
        looks = {"peak" if self.last else "now": self.peak, "end": self.last}
        found = {name: {"resident": look.resident, **asdict(look)} for name, look in looks.items() if look}
        said = {"conclusion": self.sentences(), "notes": self._notes(), "cause": asdict(self.cause)}
        return {"program": self.title} | said | found

    def show(self, out: output.Output, stream: TextIO | None = None) -> None:
        """Print all of it, and write the requested files."""
        out.show([self._table(), *self._absent()], self._notes(), self.sentences(), stream)
        out.save(self.as_dict, Picture(self.sentences()[0], self._draw, 6.5))

    def sentences(self) -> list[str]:
        """Return what the largest part is, and what would bring it down, by how much."""
        cause, total = self.cause, self.peak.resident
        size = units.size(cause.resident, 1)
        share = units.share(cause.resident, total)
        to_come = "" if self.peak.lines_of == "later arrays" else _TO_COME
        was_missed = self.peak.peak > total * _MISSED
        when = "{} were resident when most was seen" if was_missed else "At its peak {} were resident"
        whole = (when if self.last else "{} are resident").format(units.size(total, 1))
        said = [f"{whole}. The largest part, {size} ({share}), is {self._named(cause)}."]
        if cause.group in (resident.ARRAYS, resident.BUFFERS):
            gone = cause.resident - (self.last.of(cause.group, cause.what) if self.last else cause.resident)
            later = f" At its end {units.size(gone, 1)} of that were gone." if gone > cause.resident / 10 else ""
            without = (
                "Without it, or with a smaller one," if cause.blocks == 1 else "Without them, or with smaller ones,"
            )
            said.append(f"{without} it would be {size} less.{later}")
        elif cause.what in (resident.IN_USE, resident.LARGE):
            said.append(self._of_malloc().format(to_come=to_come))
        else:
            hints = [_ADVICE[name] for name in cause.what.split(" or ") if name in _ADVICE]
            said.append(" ".join(hints or [_ADVICE.get(cause.group, "")]).format(size=size, to_come=to_come))
        if cause.group == resident.IDLE:  # which is firsttouch's own, and not why the program is large
            rest = max((part for part in self.peak.parts if part is not cause), key=_resident)
            size, share = units.size(rest.resident, 1), units.share(rest.resident, total)
            said.append(f"The next largest part, {size} ({share}), is {self._named(rest)}.")
        absent = max((part for part in self.peak.parts if part.group == resident.ARRAYS), key=_untouched, default=None)
        if absent is not None and absent.untouched > total:
            much = units.size(absent.untouched, 1)
            said.append(f"{much} of what {_place(absent.what)} allocated were never written, and take no memory.")
        return [sentence for sentence in said if sentence]

    def _of_malloc(self) -> str:
        """Say whose what malloc has in use may be."""
        loaded = {part.what for part in self.peak.parts if part.group == resident.LIBRARIES}
        if not any("python" in name for name in loaded):
            return "heaptrack, or valgrind --tool=massif, names the code that asked for them."
        if self.peak.lines_of == "all arrays" or self.peak.of(resident.POOL):
            loaded.discard("numpy")
        users = "".join(f"{whose}, " for package, whose in _USERS.items() if package in loaded)
        said = f"They belong to {users}Python's strings, lists and dictionaries beyond 512 bytes, or C code"
        return said + (f". {_BY_LINE}" if "numpy" in loaded else ": memray run --native names it.")

    def _named(self, part: Part) -> str:
        """Return what a part is, after "is"."""
        what = _place(part.what)
        blocks = self._blocks(part).replace("1 ", "an ", 1) if part.blocks == 1 else self._blocks(part)
        made = f"{blocks} made by {what}" if ":" in what else f"{blocks} {what}"
        if part.group == resident.IDLE and what == resident.IDLE:
            return "memory that firsttouch's pool keeps for the next arrays"
        threads = units.count(self.peak.threads, "thread")
        return _NAMED.get(part.group, "{what}").format(made=made, what=what, threads=threads)

    def _blocks(self, part: Part) -> str:
        return units.count(part.blocks, "array" if part.group == resident.ARRAYS else "object")

    def _notes(self) -> list[str]:
        look, notes = self.peak, list(self.peak.notes)
        notes.append(f"page tables, which are not counted as resident: {units.size(look.page_tables, 1)}")
        if look.shared > look.resident * _MUCH_SHARED:
            size = units.size(look.shared, 1)
            notes.append(f"{size} of it are shared with other processes: libraries, and what was there before a fork")
        if look.swapped:
            notes.append(f"in swap: {units.size(look.swapped, 1)}")
        if look.peak > look.resident * _MISSED:
            when = "for a moment that was not looked at" if self.last else "earlier"
            notes.append(f"{units.size(look.peak, 1)} were resident {when}")
        if look.children:
            held = units.size(sum(look.children.values()), 1)
            numbers = ", ".join(map(str, list(look.children)[:5]))
            started = "a process that it started is" if len(look.children) == 1 else "processes that it started are"
            shared = ", what they share counted in each" if len(look.children) > 1 else ""
            notes.append(f"{started} not included: {numbers}, with {held}{shared}")
        if self.last and not self.saw_end:
            notes.append(
                "the last look was before the end: only Python programs that end neither by a signal nor by os._exit"
                " can be looked at in their last moment"
            )
        return notes

    def _rows(self) -> Iterator[tuple[str, float, float]]:
        """Yield what, resident at the peak and at the end: groups and their parts, the largest first."""
        peak, last = self.peak, self.last or self.peak
        least = peak.resident * _LITTLE
        for group in sorted({part.group for part in peak.parts}, key=lambda name: -peak.of(name)):
            if peak.of(group) < least and last.of(group) < last.resident * _LITTLE:
                continue
            yield group, peak.of(group), last.of(group)
            parts = [part for part in peak.parts if part.group == group and part.what != group]
            shown = [part for part in parts if part.resident > least][:_SHOWN]
            for part in shown:
                arrays = f" ({self._blocks(part)})" if part.blocks else ""
                yield f"  {_place(part.what)}{arrays}", part.resident, last.of(group, part.what)
            rest = sum(part.resident for part in parts if part not in shown)
            if rest > least:
                left = last.of(group) - sum(last.of(group, part.what) for part in shown)
                yield f"  {len(parts) - len(shown):,} others", rest, left

    def _table(self) -> Table:
        total, last = self.peak.resident, (self.last or self.peak).resident
        columns = ["resident memory", "peak MiB" if self.last else "MiB", "%", *(["end MiB"] if self.last else [])]
        table = Table("", columns)
        for what, peak, end in [*self._rows(), ("total", total, last)]:
            figures = [f"{peak / _MIB:,.1f}", units.share(peak, total).removesuffix(" %"), f"{end / _MIB:,.1f}"]
            table.rows.append([what, *figures[: len(columns) - 1]])
        return table

    def _absent(self) -> list[Table]:
        """Return the memory that is allocated or mapped but not resident, if that is much."""
        parts = [part for part in self.peak.parts if part.group not in _NEVER_FULL or part.what == resident.LARGE]
        parts = sorted((part for part in parts if part.untouched >= _MUCH), key=_untouched, reverse=True)
        table = Table("", ["allocated or mapped, not resident", "never touched MiB", "zero page MiB"])
        for part in parts[:_SHOWN]:
            figures = (part.untouched - part.zero_page, part.zero_page)
            table.rows.append([self._named(part), *(f"{figure / _MIB:,.1f}" for figure in figures)])
        return [table] if table.rows else []

    def _draw(self, axes: Axes) -> None:
        """Draw an icicle: groups at the left, their parts beside them, all as high as they are large."""
        tops, group = [0.0, 0.0], -1
        for what, size, _ in self._rows():
            column = int(what.startswith(" "))
            if column == 0:
                tops[1], group = tops[0], group + 1
            axes.bar(column, size, 1, tops[column], color=f"C{group}", alpha=0.7 - 0.3 * column, edgecolor="white")
            if size > self.peak.resident / 40:
                text = f"{what.strip()}  {units.size(size, 1)}"
                axes.text(column - 0.48, tops[column] + size / 2, text, va="center", fontsize=8, clip_on=True)
            tops[column] += size
        axes.set(xlim=(-0.5, 1.5), ylim=(max(tops[0], 1.0), 0))
        axes.set_axis_off()

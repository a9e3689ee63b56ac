"""What resident memory is, in words, tables and a picture: see `resident.py` for where the figures come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from firsttouch._internal import units
from firsttouch.tools import resident
from firsttouch.tools.cli import output
from firsttouch.tools.resident import Look, Part

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from firsttouch.tools.measuring.report import Page, Table

_MIB = 1 << 20
#: Letters of what a row is about: a table with it fits 80 columns.
_LONG = 44
#: Parts below this share of all are left out of the table.
_LITTLE = 0.005
#: What is allocated but not resident is listed from this size on.
_MUCH = 16 * _MIB
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
#: What would bring memory down, by part, allocator or group. `{size}` is filled in.
_ADVICE = {
    resident.IDLE: "It goes back by itself within about a second; firsttouch.trim() gives it back at once, and"
    " firsttouch run --max-idle limits it.",
    resident.LIVE: "These are numbers, strings, tuples, dictionaries, ... up to 512 bytes each: fewer of them, or"
    " arrays in their place, bring it down.",
    resident.GAPS_OF_OBJECTS: "Python returns it only where all objects of 1 MiB are gone: the few that were made"
    " amid many temporary ones and live on hold it.",
    resident.IN_USE: "They belong to C code, or to Python's strings, lists and dictionaries beyond 512 bytes. If no"
    " Python object holds them, C code does not free them: memray run --native names it.",
    resident.LARGE: "They belong to bytes, lists and other large Python objects, or to C code that does not free"
    " them: memray run --native names it.",
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
    "Java's heap": "The option -Xmx limits it.",
    "V8's heap": "The option --max-old-space-size limits it.",
    "PyTorch": "Deleting tensors brings it down.",
    "JAX": "Deleting arrays brings it down.",
}
#: The same of what malloc has in use, where a program imported NumPy and firsttouch does not serve it.
_PLAINLY = (
    "They belong to NumPy's arrays, to other large Python objects, or to C code. A program that is started by"
    " firsttouch why or firsttouch run --lines has the arrays by line."
)


def _place(what: str) -> str:
    """Return file and line as people write it, and anything else as it is."""
    program, comma, library = what.partition(", in ")
    file, colon, line = program.rpartition(":")
    return output.place(file, int(line)) + comma + library if colon and line.isdecimal() else what


def _fit(what: str, room: int) -> str:
    """Return the end of a long path, or the beginning of a line with a library's beside it."""
    if len(what) <= room:
        return what
    return f"{what[: room - 3]}..." if ", in " in what else f"...{what[3 - room :]}"


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

    def page(self, most: int) -> Page:
        """Return all of it; at most so many rows of each kind."""
        from firsttouch.tools.measuring.report import Page, Picture

        picture = Picture("resident", "Resident memory", lambda axes: self._draw(axes, most), 6.5)
        tables = [self._resident(most), *self._absent(most)]
        return Page(f"firsttouch why {self.title}", self.sentences(), tables, [picture], self._notes())

    def sentences(self) -> list[str]:
        """Return what the largest part is, and what would bring it down, by how much."""
        cause, total = self.cause, self.peak.resident
        size = units.size(cause.resident, 1)
        share = units.share(cause.resident, total)
        when = "At its peak {} were resident" if self.last else "{} are resident"
        whole = when.format(units.size(total, 1))
        said = [f"{whole}. The largest part, {size} ({share}), is {self._named(cause)}."]
        if cause.group in (resident.ARRAYS, resident.BUFFERS):
            gone = cause.resident - (self.last.of(cause.group, cause.what) if self.last else cause.resident)
            later = f" At its end {units.size(gone, 1)} of that were gone." if gone > cause.resident / 10 else ""
            without = (
                "Without it, or with a smaller one," if cause.blocks == 1 else "Without them, or with smaller ones,"
            )
            said.append(f"{without} it would be {size} less.{later}")
        elif cause.what in (resident.IN_USE, resident.LARGE) and self._is_plain:
            said.append(_PLAINLY)
        else:
            hints = [_ADVICE[name] for name in cause.what.split(" or ") if name in _ADVICE]
            said.append(" ".join(hints or [_ADVICE.get(cause.group, "")]).format(size=size))
        if cause.group == resident.IDLE:  # which is firsttouch's own, and not why the program is large
            rest = max((part for part in self.peak.parts if part is not cause), key=_resident)
            size, share = units.size(rest.resident, 1), units.share(rest.resident, total)
            said.append(f"The next largest part, {size} ({share}), is {self._named(rest)}.")
        absent = max((part for part in self.peak.parts if part.group == resident.ARRAYS), key=_untouched, default=None)
        if absent is not None and absent.untouched > total:
            much = units.size(absent.untouched, 1)
            said.append(f"{much} of what {_place(absent.what)} allocated were never written, and take no memory.")
        return [sentence for sentence in said if sentence]

    @property
    def _is_plain(self) -> bool:
        """Whether the process has imported NumPy, and no memory of firsttouch's."""
        return bool(self.peak.of(resident.LIBRARIES, "numpy")) and not any(
            part.group in (resident.ARRAYS, resident.IDLE) for part in self.peak.parts
        )

    def _named(self, part: Part) -> str:
        """Return what a part is, after "is"."""
        what = _place(part.what)
        noun = "array" if part.group == resident.ARRAYS else "object"
        blocks = f"an {noun}" if part.blocks == 1 else units.count(part.blocks, noun)
        made = f"{blocks} made by {what}" if ":" in what else f"{blocks} {what}"
        if part.group == resident.IDLE and what == resident.IDLE:
            return "memory that firsttouch's pool keeps for the next arrays"
        threads = units.count(self.peak.threads, "thread")
        return _NAMED.get(part.group, "{what}").format(made=made, what=what, threads=threads)

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

    def _rows(self, most: int) -> Iterator[tuple[str, float, float, int]]:
        """Yield what, resident at the peak and at the end, and depth: groups and their parts, the largest first."""
        last = self.last or self.peak
        names = {part.group for part in self.peak.parts}
        for group in sorted(names, key=lambda name: -self.peak.of(name)):
            total = self.peak.of(group)
            if total < self.peak.resident * _LITTLE and last.of(group) < last.resident * _LITTLE:
                continue
            yield group, total, last.of(group), 0
            parts = [
                part for part in self.peak.parts if part.group == group and (part.resident or last.of(group, part.what))
            ]
            shown = [part for part in parts[:most] if part.resident > self.peak.resident * _LITTLE]
            if [part.what for part in parts] == [group]:
                continue
            for part in shown:
                noun = "array" if group == resident.ARRAYS else "object"
                arrays = f" ({units.count(part.blocks, noun)})" if part.blocks else ""
                yield _fit(_place(part.what), _LONG - len(arrays)) + arrays, part.resident, last.of(group, part.what), 1
            rest = total - sum(part.resident for part in shown)
            if rest > self.peak.resident * _LITTLE:
                left = last.of(group) - sum(last.of(group, part.what) for part in shown)
                yield f"{len(parts) - len(shown):,} others", rest, left, 1

    def _resident(self, most: int) -> Table:
        from firsttouch.tools.measuring.report import Table

        total = self.peak.resident
        columns = ["resident memory", "peak MiB" if self.last else "MiB", "%", *(["end MiB"] if self.last else [])]
        table = Table("", columns)

        def add(what: str, peak: float, end: float) -> None:
            figures = [f"{peak / _MIB:,.1f}", units.share(peak, total).removesuffix(" %")]
            table.rows.append([what, *figures, *([f"{end / _MIB:,.1f}"] if self.last else [])])

        for what, peak, end, depth in self._rows(most):
            add("  " * depth + what, peak, end)
        add("total", total, (self.last or self.peak).resident)
        return table

    def _absent(self, most: int) -> list[Table]:
        """Return what is allocated or mapped and takes no memory, if that is much."""
        from firsttouch.tools.measuring.report import Table

        left_out = (resident.IDLE, resident.MALLOC, resident.OBJECTS, resident.LIBRARIES, resident.OWN)
        parts = [part for part in self.peak.parts if part.group not in left_out or part.what == resident.LARGE]
        parts = sorted((part for part in parts if part.untouched >= _MUCH), key=_untouched, reverse=True)
        rows: list[Sequence[str]] = []
        for part in parts[:most]:
            what = _place(part.what)
            kind = "" if part.group in (resident.ARRAYS, resident.OTHER, resident.MALLOC) else f"{part.group}: "
            rows.append([_fit(kind + what, _LONG), f"{part.untouched / _MIB:,.1f}"])
        return [Table("", ["allocated or mapped, not resident: never written", "MiB"], rows)] if rows else []

    def _draw(self, axes: Axes, most: int) -> None:
        """Draw an icicle: the whole, its groups, and their parts."""
        from matplotlib.patches import Rectangle

        total = self.peak.resident
        colors = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"]
        tops = [0.0, 0.0]
        group = -1
        rows = list(self._rows(most))
        for at, (what, size, _, depth) in enumerate(rows):
            if depth == 0:
                group += 1
                tops = [tops[0], tops[0]]
            color = colors[group % len(colors)]
            has_parts = depth == 0 and at + 1 < len(rows) and rows[at + 1][3] == 1
            width = 1 if has_parts or depth else 2
            top, height = tops[depth], size / total
            axes.add_patch(
                Rectangle((depth, top), width, height, facecolor=color, alpha=0.45 if depth else 0.75, ec="white")
            )
            if height > 0.025:
                text = f"{what}  {units.size(size, 1)}"
                axes.text(depth + 0.02, top + height / 2, text, va="center", fontsize=8, clip_on=True)
            tops[depth] += height
        axes.set(xlim=(0, 2), ylim=(max(tops[0], 1e-9), 0))
        axes.set_axis_off()

"""The outcome of an experiment, and BENCHMARKS.md written from it."""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from firsttouch.tools.measuring.picture import Picture, save
from firsttouch.tools.measuring.statistics import Verdict

PICTURES = "docs/benchmarks"

HEAD = """# Benchmarks

Written by `python -m benchmarks --write BENCHMARKS.md`; no number is typed in by hand.

Contenders are whole processes, measured in interleaved rounds in shuffled order, one running at a time; each
touches the memory that it can use beforehand. A figure is the median of per-round ratios over several processes,
with its 95 % bootstrap interval in brackets. *firsttouch again* is a second, equal process: its column shows the
difference between two equal runs. A bar is *passed* if the intervals allow no other reading: the geometric mean's
upper bound is at or below the bar, and no single case's lower bound is above 1.05; *failed* likewise; otherwise
*not shown*. The best peer is chosen on one half of the rounds and compared on the other.
"""


@dataclass
class Table:
    """Rows of words under a title."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list[Sequence[str]])

    def markdown(self) -> str:
        """Return the table as Markdown; pipes in cells are escaped."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        return f"{self.title}\n\n{body}\n" if self.title else body + "\n"


@dataclass
class Section:
    """The findings of an experiment."""

    name: str
    title: str
    asked: str
    tables: list[Table] = field(default_factory=list[Table])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    notes: list[str] = field(default_factory=list[str])
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    pictures: list[Picture] = field(default_factory=list[Picture])
    how: str = ""  # when, how long, quick or in full; set by `conduct`

    def as_dict(self) -> dict[str, Any]:
        """Return everything except the pictures in plain types, for JSON."""
        found = {key: getattr(self, key) for key in ("name", "title", "asked", "notes", "how", "raw")}
        found["tables"] = [asdict(table) for table in self.tables]
        found["verdicts"] = [asdict(verdict) for verdict in self.verdicts]
        return found

    def files(self) -> dict[str, Picture]:
        """Return the pictures by the names of their files, relative to BENCHMARKS.md."""
        return {f"{PICTURES}/{self.name}-{picture.name}.svg": picture for picture in self.pictures}

    def markdown(self) -> str:
        """Return the section between two markers, so that a single experiment can be rewritten later."""
        parts = [f"<!-- {self.name} -->", f"## {self.title}", "", f"Asked: {self.asked}", ""]
        if self.verdicts:
            rows: list[Sequence[str]] = [(v.bar, v.figure, f"**{v.outcome}**") for v in self.verdicts]
            parts += [Table("", ("bar", "got", "outcome"), rows).markdown()]
        parts += [table.markdown() for table in self.tables]
        parts += [f"![{picture.title}]({file})\n" for file, picture in self.files().items()]
        parts += [f"- {note}" for note in self.notes]
        parts += ["", f"*{self.how}*", "", f"<!-- end of {self.name} -->", ""]
        return "\n".join(parts)


def machine_markdown(machine: Mapping[str, str]) -> str:
    """Return the machine as a table."""
    rows: list[Sequence[str]] = [(key, value) for key, value in machine.items()]
    return "## The machine\n\n" + Table("", ("what", "value"), rows).markdown()


def kept_sections(path: Path, machine: str) -> dict[str, str]:
    """Return the sections already in the file, if they come from the same machine and software."""
    if not path.exists():
        return {}
    text = path.read_text()
    if machine not in text:
        return {}
    found = re.findall(r"(<!-- (\S+) -->\n.*?<!-- end of \2 -->\n)", text, re.DOTALL)
    return {name: section for section, name in found}


def write(path: Path, machine: Mapping[str, str], sections: Sequence[Section], order: Sequence[str]) -> None:
    """Write the file and its pictures; sections of experiments that were not run are kept."""
    described = machine_markdown(machine)
    texts = kept_sections(path, described)
    texts.update({section.name: section.markdown() for section in sections})
    for section in sections:
        for file, picture in section.files().items():
            (path.parent / PICTURES).mkdir(parents=True, exist_ok=True)
            save([picture], path.parent / file)
    path.write_text("\n".join([HEAD, described, *(texts[name] for name in order if name in texts)]))


def conduct(run: Callable[[], Section], quick: bool) -> Section:
    """Return the section that `run` returns, with its `how` filled in."""
    busy = os.getloadavg()[0]
    start = time.monotonic()
    section = run()
    took = time.monotonic() - start
    kind = "A quick run, which only shows that the experiment works" if quick else "Measured in full"
    section.how = f"{kind}, {datetime.date.today().isoformat()}, in {took:.0f} s; "
    section.how += f"the load average was {busy:.2f} at the start."
    return section

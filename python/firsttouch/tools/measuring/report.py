"""The outcome of an experiment, as Markdown and as plain types."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.statistics import Verdict


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
        """Return the pictures by the names of their files, which lie beside the section's."""
        return {f"{self.name}-{picture.name}.svg": picture for picture in self.pictures}

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

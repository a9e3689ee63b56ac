"""A self-contained HTML report: conclusions, tables, plots, the machine and the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template

from firsttouch.tools.measuring.picture import Picture, svg
from firsttouch.tools.measuring.report import Table

_TEMPLATE = Path(__file__).with_name("page.html")
#: The width of a picture in inches, on a wide screen and on a phone.
_ROOMY, _NARROW = 9.6, 4.6


@dataclass(frozen=True)
class Page:
    """The content of the page, from the top; texts are plain and are escaped here."""

    title: str
    when: str
    lead: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    repeat: Mapping[str, str] = field(default_factory=dict[str, str])
    """Descriptions of commands, and the commands."""
    machine: Mapping[str, str] = field(default_factory=dict[str, str])

    def html(self) -> str:
        """Return the whole file; matplotlib draws the pictures."""
        parts = ['<div class="lead">', *(f"<p>{escape(sentence)}</p>" for sentence in self.lead), "</div>"]
        parts += [_table(table) for table in self.tables]
        parts += [_picture(picture) for picture in self.pictures]
        if self.notes:
            parts += ["<h2>Notes</h2>", "<ul>", *(f"<li>{escape(note)}</li>" for note in self.notes), "</ul>"]
        if self.repeat:
            parts.append("<h2>How to reproduce</h2>")
        parts += [f"<p>{escape(what)}</p>\n<pre>{escape(how)}</pre>" for what, how in self.repeat.items()]
        parts += ["<h2>The machine</h2>", _facts(self.machine)] if self.machine else []
        template = Template(_TEMPLATE.read_text("utf-8"))
        return template.substitute(title=escape(self.title), when=escape(self.when), body="\n".join(parts))


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<h2>{escape(table.title)}</h2>\n<div class="wide"><table>\n<tr>{head}</tr>\n{rows}\n</table></div>'


def _picture(picture: Picture) -> str:
    shown = "".join(
        f'<div class="{kind}" role="img" aria-label="{escape(picture.title)}">{svg(picture, width)}</div>\n'
        for kind, width in (("roomy", _ROOMY), ("narrow", _NARROW))
    )
    return f"<h2>{escape(picture.title)}</h2>\n<figure>\n{shown}</figure>"


def _facts(facts: Mapping[str, str]) -> str:
    rows = "\n".join(f"<tr><td>{escape(what)}</td><td>{escape(value)}</td></tr>" for what, value in facts.items())
    return f'<table class="facts">\n{rows}\n</table>'

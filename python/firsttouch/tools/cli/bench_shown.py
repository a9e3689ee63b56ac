"""What `firsttouch bench` prints and writes."""

from __future__ import annotations

import datetime
import os
import shlex
import sys
from collections.abc import Sequence

from rich.console import Console

from firsttouch.tools.cli.output import Output
from firsttouch.tools.measuring.console import plain, say
from firsttouch.tools.measuring.console import show as show_table
from firsttouch.tools.measuring.machine import describe
from firsttouch.tools.measuring.page import Page
from firsttouch.tools.measuring.report import Section, Table


def show(section: Section, quiet: bool) -> None:
    """The tables, then what they say."""
    width = None if os.isatty(1) else 120  # a file has no width of its own
    console = Console(highlight=False, markup=False, width=width)
    console.print(f"{section.name}: {plain(section.title)}", style="bold")
    if not quiet:
        console.print()
        for table in section.tables:
            show_table(table, console)
    for sentence in sentences(section):
        say(sentence, console, "- ")
    console.print()


def sentences(section: Section) -> list[str]:
    """The outcome of each bar, then the answers."""
    judged = [f"{verdict.bar}: {verdict.outcome} ({verdict.figure})" for verdict in section.verdicts]
    return [plain(text) for text in (*section.notes, *judged)]


def save(sections: Sequence[Section], cautions: Sequence[str], out: Output) -> None:
    """Say what makes the figures worth less, and write the files that were asked for."""
    if out.prints:
        for caution in cautions:
            print(f"To be known: {caution}")
    out.save_plot([picture for section in sections for picture in section.pictures])
    found = {"machine": describe(), "cautions": list(cautions)}
    out.save_json(lambda: found | {"experiments": [section.as_dict() for section in sections]})
    out.save_html(lambda: page(sections, cautions).html())


def page(sections: Sequence[Section], cautions: Sequence[str]) -> Page:
    """Everything on one page."""
    names = " ".join(section.name for section in sections)
    return Page(
        title=f"firsttouch bench {names}",
        when=f"{datetime.date.today().isoformat()} on {os.uname().nodename}",
        lead=[f"{section.name}: {sentence}" for section in sections for sentence in sentences(section)],
        tables=[
            Table(f"{section.name}: {plain(table.title)}", table.columns, table.rows)
            for section in sections
            for table in section.tables
        ],
        pictures=[picture for section in sections for picture in section.pictures],
        notes=[*cautions, *(f"{section.name}: {section.how}" for section in sections)],
        repeat={"All of it": shlex.join(["firsttouch", *sys.argv[1:]])},
        machine=describe(),
    )

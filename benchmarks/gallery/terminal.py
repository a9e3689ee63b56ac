"""What `firsttouch compare` printed about a program, as a picture of a terminal: the README shows one."""

from __future__ import annotations

import io
import re

from rich.console import Console

from benchmarks.gallery.catalogue import Program
from benchmarks.gallery.facts import Figures
from firsttouch.tools.compare import report
from firsttouch.tools.measuring.console import say, show

_COLUMNS = 98  # of the table, and no more: a README is narrow


def terminal(program: Program, figures: Figures) -> str:
    """Return the table and the conclusion of a recorded comparison as SVG."""
    console = Console(
        record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False, markup=False
    )
    console.print(f"$ firsttouch compare {program.path.name}")
    show(report.table(figures.outcome), console)
    for sentence in report.judged(figures.outcome).sentences:
        say(sentence, console, style="bold")
    text = console.export_svg(title=program.title, unique_id="compare")
    # Pages that embed the file as an image load nothing else: the font is what the reader's system has.
    return re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL)

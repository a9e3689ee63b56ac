"""What one sees first in BENCHMARKS.md: every bar that was not met, and a line for each experiment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.places import ELSEWHERE
from firsttouch.tools.measuring.report import Table

#: Tables of more lines than this wait behind a line to click on: the bars and the notes say what they show.
LONG = 15

_BARS = re.compile(r"^\| bar \| got \| outcome \|\n\| --- .*\n((?:\|.*\n)+)\n", re.MULTILINE)
_VERDICT = re.compile(r"^\| (.*) \| (.*) \| \*\*(.*)\*\* \|$", re.MULTILINE)
_CASES = re.compile(r"; (?:for certain|certainly) above ([\d.]+): (.*)")
_TABLES = re.compile(r"(?:^(?:\*\*.*\n\n)?(?:\|.*\n)+\n)+", re.MULTILINE)


def overview(sections: Sequence[str]) -> str:
    """Return the overview of sections that are Markdown."""
    missed: list[Sequence[str]] = []
    every: list[Sequence[str]] = []
    for section in sections:
        link, bars = _link(section), _BARS.search(section)
        verdicts = _VERDICT.findall(bars[1]) if bars else []
        passed = [outcome for *_, outcome in verdicts].count("passed")
        short = [
            (bar, _CASES.sub(_counted, figure).removeprefix("geometric mean "), f"**{outcome}**")
            for bar, figure, outcome in verdicts
            if outcome != "passed"
        ]
        missed += [("" if number else link, *words) for number, words in enumerate(short)]
        every.append((link, f"{passed} of {len(verdicts)}" if bars else "no bar", _date(section)))
    parts = []
    if missed:
        said = "A bar is what an experiment asked for; figures without a unit are geometric means of ratios."
        parts += ["## Every bar that was not met\n", f"{said}\n"]
        parts.append(Table("", ("experiment", "bar", "got", "outcome"), missed).markdown())
    parts += ["## Every experiment\n", Table("", ("experiment", "bars passed", "measured"), every).markdown()]
    return "\n".join(parts)


def fold(section: str) -> str:
    """Return a section whose long tables one has to open; its bars, pictures and notes stay in sight."""
    if "<details>" in section:
        return section
    bars = _BARS.search(section)
    tables = _TABLES.search(section, bars.end() if bars else 0)
    if tables is None or tables[0].count("\n|") <= LONG:
        return section
    count = len(re.findall(r"^\| --- ", tables[0], re.MULTILINE))
    summary = f"<summary>{'The table' if count == 1 else f'The {count} tables'}</summary>"
    folded = f"<details>\n{summary}\n\n{tables[0]}</details>\n\n"
    return section[: tables.start()] + folded + section[tables.end() :]


def _counted(cases: re.Match[str]) -> str:
    """Return how many single cases are above a bar; their section names them."""
    count = cases[2].count("[")
    return f"; {count} {'case' if count == 1 else 'cases'} above {cases[1]}"


def _link(section: str) -> str:
    """Return a link to the section, by the anchor that GitHub and Sphinx give its heading."""
    (title,) = re.findall(r"^## (.*)$", section, re.MULTILINE)
    anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{anchor})"


def _date(section: str) -> str:
    """Return when it was measured, and whether on a machine of its own."""
    how = re.findall(r"^\*(.*)\*$", section, re.MULTILINE)[-1]
    date = re.search(r"\d{4}-\d\d-\d\d", how)
    found = date[0] if date else how
    return f"{found}, another machine" if ELSEWHERE in how else found

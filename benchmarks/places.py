"""Where a section was measured: a record in its text, and the sentence that the record gives beside another machine."""

from __future__ import annotations

import re
from collections.abc import Mapping

ELSEWHERE = " Not on the machine above but on another one: "
_RECORD = re.compile(r"^<!-- measured on (.*) -->$", re.MULTILINE)
_HOW = re.compile(r"^\*(.*)\*(?=\n\n<!-- end of )", re.MULTILINE)


def in_words(machine: Mapping[str, str]) -> str:
    """Return what figures depend on first, in one line; machines of the same words count as one."""
    cores, cpu, kernel, huge, python, numpy = (
        machine.get(key, "unknown") for key in ("cores", "CPU", "kernel", "transparent huge pages", "Python", "NumPy")
    )
    huge = re.sub(r".*?\[(\w+)\].*", r"\1", huge)
    return f"{cores.partition(' ')[0]} cores of {cpu}, Linux {kernel}, huge pages {huge}, {python}, NumPy {numpy}"


def recorded(section: str, place: str) -> str:
    """Return a section with a record of its machine before the line that says when it was measured."""
    return _HOW.sub(lambda how: f"<!-- measured on {place} -->\n\n{how[0]}", section)


def measured_on(section: str) -> str:
    """Return the machine of a section's record."""
    record = _RECORD.search(section)
    if record is None:
        raise ValueError(f"no record of the machine in the section {section.partition(chr(10))[0]}")
    return record[1]


def beside(section: str, place: str) -> str:
    """Return a section as it stands below the table of a machine: one that was measured on another says so."""
    own = measured_on(section)
    sentence = "" if own == place else f"{ELSEWHERE}{own}."
    return _HOW.sub(lambda how: f"*{how[1].partition(ELSEWHERE)[0]}{sentence}*", section)

"""BENCHMARKS.md: an overview, the machine, and a section for each experiment, of which single ones can be run again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.overview import fold, overview
from benchmarks.places import beside, in_words, measured_on, recorded
from firsttouch.tools.measuring.picture import save
from firsttouch.tools.measuring.report import PICTURES, Section, Table

HEAD = """# Benchmarks

Written by `python -m benchmarks --write BENCHMARKS.md`; no number is typed in by hand.

Contenders are whole processes, measured in interleaved rounds in shuffled order, one running at a time; each
touches the memory that it can use beforehand. A figure is the median of per-round ratios over several processes,
with its 95 % bootstrap interval in brackets. *firsttouch again* is a second, equal process: its column shows the
difference between two equal runs. A bar is *passed* if the intervals allow no other reading: the geometric mean's
upper bound is at or below the bar, and no single case's lower bound is above 1.05; *failed* likewise; otherwise
*not shown*. The best peer is chosen on one half of the rounds and compared on the other.
"""


def machine_markdown(machine: Mapping[str, str]) -> str:
    """Return the machine as a table."""
    rows: list[Sequence[str]] = [(key, value) for key, value in machine.items()]
    return "## The machine\n\n" + Table("", ("what", "value"), rows).markdown()


def write(path: Path, machine: Mapping[str, str], sections: Sequence[Section], order: Sequence[str]) -> None:
    """Write the file and its pictures; other sections are kept, and say so if their machine is another one."""
    before = path.read_text() if path.exists() else ""
    texts = _sections(before)
    texts.update({section.name: recorded(section.markdown(), in_words(machine)) for section in sections})
    for section in sections:
        for file, picture in section.files().items():
            (path.parent / PICTURES).mkdir(parents=True, exist_ok=True)
            save([picture], path.parent / file)
    kept = [texts[name] for name in order if name in texts]
    # The machine that is shown whole is the one of most sections.
    places = [measured_on(text) for text in kept]
    machines = [_machine(before), machine] if before else [machine]
    path.write_text(_composed(max(machines, key=lambda one: places.count(in_words(one))), kept))


def rendered(text: str) -> str:
    """Return the file as it would be written from the machine and the sections in its text."""
    return _composed(_machine(text), _sections(text).values())


def _machine(text: str) -> dict[str, str]:
    """Return the machine that a file describes."""
    table = re.search(r"## The machine\n\n\| what .*\n\| --- .*\n((?:\|.*\n)+)", text)
    if table is None:
        raise ValueError("it holds no table of the machine, so this command did not write it")
    return dict(re.findall(r"^\| (.*?) \| (.*) \|$", table[1].replace("\\|", "|"), re.MULTILINE))


def _sections(text: str) -> dict[str, str]:
    found = re.findall(r"(<!-- (\S+) -->\n.*?<!-- end of \2 -->\n)", text, re.DOTALL)
    return {name: section for section, name in found}


def _composed(machine: Mapping[str, str], sections: Iterable[str]) -> str:
    folded = [fold(beside(section, in_words(machine))) for section in sections]
    return "\n".join([HEAD, overview(folded), machine_markdown(machine), *folded])

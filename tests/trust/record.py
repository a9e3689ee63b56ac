"""The table of the page on trust: one line for each part, written by the tools themselves."""

from __future__ import annotations

import csv
import dataclasses
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TABLE = Path(__file__).parents[2] / "docs" / "explanation" / "trust.csv"
HEAD = ("part", "last run", "of commit", "for", "what it did", "found")


def duration(seconds: float) -> str:
    return (
        f"{seconds / 3600:.1f} h"
        if seconds >= 5400
        else f"{seconds / 60:.0f} min"
        if seconds >= 90
        else f"{seconds:.0f} s"
    )


@dataclasses.dataclass
class Programs:
    """What runs of random programs did: programs, steps, those on the library as it is, hours of processor time."""

    programs: int
    steps: int
    of_this: int
    hours: float

    def __str__(self) -> str:
        return (
            f"{self.programs:,} programs, {self.steps:,} steps ({self.of_this:,} on this library), "
            f"{self.hours:.2f} processor-hours"
        )


PROGRAMS = re.compile(r"([\d,]+) programs, ([\d,]+) steps \(([\d,]+) on this library\), ([\d.]+) processor-hours")


def added(now: Programs, table: Path = TABLE) -> Programs:
    """Return what a run and the recorded ones before it did: the campaign goes on while the library changes."""
    said = rows(table).get("random programs")
    before = said and PROGRAMS.fullmatch(said[4])
    if not said or not before:
        return now
    programs, steps, of_this = (int(each.replace(",", "")) for each in before.groups()[:3])
    if _library(said[2]) != _library("HEAD"):
        of_this = 0
    hours = now.hours + float(before[4])
    return Programs(now.programs + programs, now.steps + steps, now.of_this + of_this, hours)


def _library(commit: str) -> list[str]:
    """Return what tells a library from another one: its files, without those that only test it."""
    files = _git("ls-tree", "-r", commit, ":/crates", ":/python").splitlines()
    return [file for file in files if "/tests/" not in file and "/benches/" not in file]


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(TABLE.parent), *words], capture_output=True, text=True).stdout.strip()


def record(part: str, seconds: float, did: str, found: str) -> None:
    """Put what a part did into the table, in place of what it did before, if FIRSTTOUCH_TRUST_RECORD is set."""
    if not os.environ.get("FIRSTTOUCH_TRUST_RECORD"):
        return
    # Not one that only records: those may be amended away.
    commit = _git("log", "-1", "--format=%h", "--", ":/", f":!{TABLE.name}") or "unknown"
    put(TABLE, HEAD, (part, time.strftime("%Y-%m-%d"), commit, duration(seconds), did, found))


def rows(table: Path) -> dict[str, Sequence[str]]:
    """Return the rows of a table by their first words."""
    if not table.exists():
        return {}
    with table.open(encoding="utf-8", newline="") as file:
        return {each[0]: each for each in list(csv.reader(file))[1:]}


def put(table: Path, head: Sequence[str], row: Sequence[str]) -> None:
    """Put a row into a table, in place of the one that begins with the same words."""
    known = rows(table) | {row[0]: row}
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *(known[name] for name in sorted(known))])


def fuzzed(seconds: float, logs: list[str]) -> None:
    """Record what libFuzzer's statistics say."""
    told, failed = [], []
    for log in map(Path, logs):
        text = log.read_text(encoding="utf-8", errors="replace")
        found = re.findall(r"(?:number_of_executed_units:|Done|^)\s*(\d+)(?: runs| inputs|$)", text, re.MULTILINE)
        told.append(f"{log.stem} {int(found[-1]):,}" if found else f"{log.stem} not finished")
        failed += [log.stem] * ("ERROR: " in text or "Traceback" in text)
    record(
        "fuzzing",
        seconds * len(logs),
        f"inputs: {', '.join(told)}",
        f"failed: {', '.join(failed)}" if failed else "nothing",
    )


if __name__ == "__main__":
    fuzzed(float(sys.argv[1]), sys.argv[2:])

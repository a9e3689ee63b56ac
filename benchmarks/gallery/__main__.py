"""The command: run programs, record what was measured, and write the pages."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.gallery.catalogue import FOLDER, catalogue
from benchmarks.gallery.facts import Figures
from benchmarks.gallery.pages import index, page
from benchmarks.gallery.pictures import drawn
from benchmarks.gallery.record import RunError, record
from benchmarks.gallery.terminal import terminal

RECORDED = FOLDER / "recorded.json"
#: The program whose comparison the README shows.
SHOWN = "option_pricing"


def pages(recorded: dict[str, Any]) -> dict[Path, str]:
    """Return every generated file with its content."""
    programs = [program for program in catalogue() if program.name in recorded["programs"]]
    files = {FOLDER / "index.md": index(programs, recorded)}
    for program in programs:
        kept = recorded["programs"][program.name]
        files[FOLDER / f"{program.name}.md"] = page(program, kept, recorded["machine"])
        files[FOLDER / "pictures" / f"{program.name}.svg"] = drawn(program.name, Figures(kept))
        if program.name == SHOWN:
            files[FOLDER / "pictures" / "terminal.svg"] = terminal(program, Figures(kept))
    return files


def render(recorded: dict[str, Any]) -> None:
    """Write the pages."""
    for path, text in pages(recorded).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


def run(names: list[str], budget: str) -> None:
    """Run the programs; after each, its record is kept, so that an interruption loses only one."""
    for program in catalogue():
        if names and program.name not in names:
            continue
        print(f"== {program.name}", flush=True)
        machine, found = record(program, budget)
        recorded: dict[str, Any] = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
        if recorded.get("machine") != machine:  # figures of different machines do not belong in one table
            recorded = {"machine": machine, "programs": {}}
        recorded["programs"][program.name] = found
        recorded["matplotlib"] = version("matplotlib")
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")
        print(found["advise"]["text"], found["compare"]["text"], sep="\n\n", flush=True)
        if words := Figures(found).contradiction:
            print(f"*** {program.name}: {words}", flush=True)
        render(recorded)


def main() -> int:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("render", help="write the pages from recorded.json")
    runs = commands.add_parser("run", help="run programs, record and render")
    runs.add_argument("names", nargs="*", metavar="NAME", help="programs to run (default: all)")
    runs.add_argument("--budget", default="1m", help="of each comparison, as of firsttouch compare (default: 1m)")
    given = parser.parse_args()
    if given.command == "render":
        render(json.loads(RECORDED.read_text("utf-8")))
        return 0
    known = [program.name for program in catalogue()]
    for name in given.names:
        if name not in known:
            parser.error(f"unknown program {name!r}: there are {', '.join(known)}")
    try:
        run(given.names, given.budget)
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

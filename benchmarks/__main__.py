"""The command: run experiments, print their sections, write BENCHMARKS.md."""

from __future__ import annotations

import argparse
import importlib
import json
from dataclasses import replace
from pathlib import Path

from benchmarks.document import machine_markdown, rendered, write
from benchmarks.experiments import CLASSIC, EVERY
from firsttouch._internal.process_memory import touch
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.measuring.machine import available, describe
from firsttouch.tools.measuring.report import Section, conduct


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"experiments to run: {', '.join(EVERY)}")
    parser.add_argument("--quick", action="store_true", help="few rounds and sizes, only to test the experiments")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the sections into this file")
    parser.add_argument("--render", type=Path, metavar="FILE", help="only write this file's overview and folds again")
    parser.add_argument("--raw", type=Path, metavar="FILE", help="write every reply as JSON")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in EVERY:
            parser.error(f"unknown experiment {name!r}: there are {', '.join(EVERY)}")
    try:  # now, not after hours
        for path in filter(None, (arguments.write, arguments.raw)):
            path.open("a").close()
        for path in filter(None, (arguments.write, arguments.render)):
            if (text := path.read_text()) or path is arguments.render:
                rendered(text)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        parser.error(f"{path}: {error}")
    return arguments


def run(name: str, quick: bool) -> Section:
    """Run one experiment, and record how it was run."""
    if name in CLASSIC:
        classic = importlib.import_module(f"firsttouch.tools.bench.{CLASSIC[name]}")
        section = conduct(lambda: classic.run(Settings(quick)), quick)
        return replace(section, name=name, title=f"firsttouch bench {CLASSIC[name]}: {section.title}")
    module = importlib.import_module(f"benchmarks.experiments.{name}")
    return conduct(lambda: module.run(quick), quick)


def main() -> int:
    """Run the named experiments, or all."""
    arguments = parse()
    if arguments.render is not None:
        arguments.render.write_text(rendered(arguments.render.read_text()))
        return 0
    machine = describe()
    print(machine_markdown(machine), flush=True)
    if not arguments.quick:
        touch(int(available() * 0.8))
    sections: list[Section] = []
    for name in arguments.names or EVERY:
        sections.append(run(name, arguments.quick))
        print(sections[-1].markdown(), flush=True)
        if arguments.write is not None:  # after each, so that an interrupted run loses only one section
            write(arguments.write, machine, sections, EVERY)
    if arguments.raw is not None:
        raw = {section.name: section.raw for section in sections}
        arguments.raw.write_text(json.dumps({"machine": machine, "experiments": raw}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

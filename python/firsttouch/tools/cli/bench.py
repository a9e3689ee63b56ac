"""`firsttouch bench`: the classic experiments on the memory behind arrays, on this machine."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from _firsttouch_start import speak
from firsttouch._firsttouch import did_you_mean
from firsttouch.tools.cli import output, program
from firsttouch.tools.cli.output import Output, Progress
from firsttouch.tools.cli.parser import BadUsageError, Parser

if TYPE_CHECKING:
    from firsttouch.tools.bench.common import Settings
    from firsttouch.tools.measuring.report import Page, Section

_USAGE = "firsttouch bench [EXPERIMENT ...] [options]"

_DESCRIPTION = """\
Run classic experiments on the memory behind arrays. Each prints its tables and a short conclusion
for this machine. Without a name the experiments are listed; --quick alone runs all of them, in
under three minutes.
"""

_EXAMPLES = """\
for example:
  firsttouch bench                          list the experiments
  firsttouch bench zeros
  firsttouch bench zeros triad --quick --plot out.png
  firsttouch bench zeros --sizes 64KiB,1MiB,"2 GiB"
  firsttouch bench all --json figures.json
  firsttouch bench --quick                  the same as bench all --quick
"""


def main(words: Sequence[str]) -> int:
    """List the experiments, or run those that were named."""
    parser = _parser()
    given = parser.parse(words)
    names = _names(given)
    if not names:
        print(_listing(), end="")
        return 0
    out = output.checked(given, "bench", "numpy", "rich")

    from firsttouch.tools.measuring.machine import Watch, cautions

    settings = _settings(given, names)
    sections: list[Section] = []
    watch = Watch()
    for name in names:
        try:
            sections.append(_run(name, settings, out))
        except RuntimeError as error:  # in a worker: the other experiments may still succeed
            speak.write(sys.__stderr__, f"firsttouch: bench: {name} failed: {error}\n")
            continue
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted in {name}; no file is written") from None
        if out.prints:
            show(sections[-1], out.quiet)
    if sections:
        save(sections, [*cautions(), *watch.finish()], out)
    return 0 if len(sections) == len(names) else 1


def _parser() -> Parser:
    parser = Parser("bench", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("names", nargs="*", metavar="EXPERIMENT", help="experiments to run, or all")
    add("--sizes", metavar="SIZES", help='array sizes, as in 4KiB,1MiB,"2 GiB" (default: chosen by each experiment)')
    add("--quick", action="store_true", help="few sizes and rounds: shows the trend only")
    add(
        "--allocator",
        metavar="EXPRESSION",
        action="append",
        default=[],
        help="add an allocator, such as mimalloc, to experiments that compare allocators; repeatable",
    )
    output.add(parser, plot=True)
    return parser


def _names(given: argparse.Namespace) -> list[str]:
    """Return the named experiments, each once; empty if they are to be listed."""
    from firsttouch.tools.bench import NAMES

    names = given.names or (["all"] if given.quick or given.sizes else [])
    for name in names:
        if name != "all" and name not in NAMES:
            near = did_you_mean(name, [*NAMES, "all"]) or f": there are {', '.join(NAMES)}"
            raise BadUsageError(f"bench: unknown experiment {name!r}{near}")
    return list(NAMES) if "all" in names else list(dict.fromkeys(names))


def _listing() -> str:
    from firsttouch.tools.bench import NAMES

    width = max(map(len, NAMES), default=0)
    rows = "\n".join(
        textwrap.fill(question, 80, initial_indent=f"  {name:{width}}  ", subsequent_indent=" " * (width + 4))
        for name, question in NAMES.items()
    )
    return f"experiments:\n{rows}\n\nfirsttouch bench NAME runs one of them, firsttouch bench all every one\n"


def _settings(given: argparse.Namespace, names: Sequence[str]) -> Settings:
    """Build the settings. A size that does not fit an experiment is rejected before anything runs."""
    from firsttouch.tools.bench import common

    for expression in given.allocator:
        program.checked(expression, "bench")
    try:
        wanted = None if given.sizes is None else common.parse(given.sizes)
        for name in names:
            module = importlib.import_module(f"firsttouch.tools.bench.{name}")
            common.check(wanted or (), name, module.ARRAYS)
    except (ValueError, OverflowError, ImportError) as error:
        raise BadUsageError(f"bench: {error}") from None
    return common.Settings(given.quick, wanted, tuple(given.allocator))


def _run(name: str, settings: Settings, out: output.Output) -> Section:
    """Run one experiment, with its progress on standard error."""
    from firsttouch.tools.measuring.report import conduct

    module = importlib.import_module(f"firsttouch.tools.bench.{name}")
    with Progress(name, out.quiet) as bar:
        watched = replace(settings, progress=bar.done)
        return conduct(lambda: module.run(watched), settings.quick)


def show(section: Section, quiet: bool) -> None:
    """Print the tables, then the conclusions."""
    from firsttouch.tools.measuring.report import plain, say

    console = output.console()
    console.print(f"{section.name}: {plain(section.title)}", style="bold")
    if not quiet:
        console.print()
        for table in section.tables:
            table.show(console)
    for sentence in section.sentences():
        say(sentence, console, "- ")
    console.print()


def save(sections: Sequence[Section], cautions: Sequence[str], out: Output) -> None:
    """Print what makes the figures less reliable, and write the requested files."""
    from firsttouch.tools.measuring.machine import describe
    from firsttouch.tools.measuring.report import say

    if out.prints:
        for caution in cautions:
            say(caution, output.console(), "note: ")
    about = {"machine": describe(), "cautions": list(cautions)}
    out.save(
        lambda: about | {"experiments": [section.as_dict() for section in sections]},
        lambda: page(sections, cautions),
        lambda: [picture for section in sections for picture in section.pictures],
    )


def page(sections: Sequence[Section], cautions: Sequence[str]) -> Page:
    """Return all sections as one page."""
    from firsttouch.tools.measuring.machine import describe
    from firsttouch.tools.measuring.report import Page, Table, plain

    return Page(
        title=f"firsttouch bench {' '.join(section.name for section in sections)}",
        lead=[f"{section.name}: {sentence}" for section in sections for sentence in section.sentences()],
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

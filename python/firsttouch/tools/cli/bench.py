"""`firsttouch bench`: the classic experiments on the memory behind arrays, on this machine."""

from __future__ import annotations

import argparse
import datetime
import importlib
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from _firsttouch_start import speak
from firsttouch._firsttouch import did_you_mean, parse_size
from firsttouch.tools.bench import NAMES
from firsttouch.tools.cli import output
from firsttouch.tools.cli.output import Output, Progress
from firsttouch.tools.cli.parser import BadUsageError, Parser

if TYPE_CHECKING:
    from firsttouch.tools.bench.common import Section, Settings

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
    given = _parser().parse(words)
    names = _names(given)
    if not names:
        print(_listing(), end="")
        return 0
    out = output.checked(given, "bench", "numpy", "rich")

    from firsttouch.tools.bench.common import Settings
    from firsttouch.tools.measuring.machine import Watch, cautions

    settings = Settings(given.quick, given.sizes)
    for name in names:
        _check(name, settings)  # now, not after minutes
    sections: list[Section] = []
    watch = Watch()
    for name in names:
        try:
            sections.append(_run(name, settings, out))
        except RuntimeError as error:  # in a worker: the other experiments may still succeed
            speak.write(sys.__stderr__, f"firsttouch: bench: {name} failed: {error}\n")
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted in {name}; no file is written") from None
    if sections:
        _save(sections, [*cautions(), *watch.finish()], out)
    return 0 if len(sections) == len(names) else 1


def _parser() -> Parser:
    parser = Parser("bench", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("names", nargs="*", metavar="EXPERIMENT", help="experiments to run, or all")
    add(
        "--sizes",
        metavar="SIZES",
        type=_sizes,
        help='array sizes, as in 4KiB,1MiB,"2 GiB" (default: chosen by each experiment)',
    )
    add("--quick", action="store_true", help="few sizes and rounds: shows the trend only")
    output.add(parser, plot=True)
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of sizes, in bytes, smallest first."""
    try:
        sizes = {parse_size(word.strip()) for word in text.split(",") if word.strip()}
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not sizes:
        raise argparse.ArgumentTypeError(f"{text!r}: give sizes, as in 4KiB,1MiB")
    if min(sizes) < 8:
        raise argparse.ArgumentTypeError(f"an array of {min(sizes)} bytes holds no item; give at least 8")
    return tuple(sorted(sizes))


def _names(given: argparse.Namespace) -> list[str]:
    """Return the named experiments, each once; empty if they are to be listed."""
    names = given.names or (["all"] if given.quick or given.sizes else [])
    for name in names:
        if name != "all" and name not in NAMES:
            near = did_you_mean(name, [*NAMES, "all"]) or f": there are {', '.join(NAMES)}"
            raise BadUsageError(f"bench: unknown experiment {name!r}{near}")
    return list(NAMES) if "all" in names else list(dict.fromkeys(names))


def _listing() -> str:
    width = max(map(len, NAMES))
    rows = "\n".join(
        textwrap.fill(question, 80, initial_indent=f"  {name:{width}}  ", subsequent_indent=" " * (width + 4))
        for name, question in NAMES.items()
    )
    return f"experiments:\n{rows}\n\nfirsttouch bench NAME runs one of them, firsttouch bench all every one\n"


def _module(name: str) -> Any:
    return importlib.import_module(f"firsttouch.tools.bench.{name}")


def _check(name: str, settings: Settings) -> None:
    """Reject sizes that do not fit an experiment."""
    try:
        settings.chosen((8,), (8,), _module(name).ARRAYS)
    except (ValueError, ImportError) as error:
        raise BadUsageError(f"bench: {name}: {error}") from None


def _run(name: str, settings: Settings, out: Output) -> Section:
    """Run one experiment, with its progress on standard error, and print what it found."""
    from firsttouch.tools.measuring.report import Page

    with Progress(name, out.quiet) as bar:
        section: Section = _module(name).run(replace(settings, progress=bar.done))
    if out.prints:
        print(f"{name}: {section.title}\n")
        out.show(Page(section.title, section.notes, section.tables))
        print(flush=True)
    return section


def _save(sections: Sequence[Section], cautions: Sequence[str], out: Output) -> None:
    """Print what makes the figures less reliable, and write the requested files."""
    from firsttouch.tools.measuring.machine import describe
    from firsttouch.tools.measuring.report import Page, Table

    for caution in cautions if out.prints else ():
        print(output.wrapped(f"note: {caution}", sys.stdout))
    data = [
        {key: getattr(each, key) for key in ("name", "title", "asked", "notes", "raw")}
        | {"tables": [asdict(table) for table in each.tables]}
        for each in sections
    ]
    page = Page(
        title=f"firsttouch bench {' '.join(section.name for section in sections)}",
        lead=[f"{section.name}: {sentence}" for section in sections for sentence in section.notes],
        tables=[
            Table(f"{section.name}: {table.title}", table.columns, table.rows)
            for section in sections
            for table in section.tables
        ],
        pictures=[picture for section in sections for picture in section.pictures],
        notes=[*cautions, *(f"{section.name} asks: {section.asked}" for section in sections)],
        repeat={"All of it": shlex.join(["firsttouch", *sys.argv[1:]])},
    )
    about = {"machine": describe(), "cautions": list(cautions), "date": datetime.date.today().isoformat()}
    out.save(lambda: about | {"experiments": data}, page)

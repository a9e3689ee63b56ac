"""`firsttouch bench`: the classic experiments on the memory behind arrays, on this machine."""

from __future__ import annotations

import argparse
import datetime
import importlib
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from _firsttouch_start import speak
from firsttouch._firsttouch import did_you_mean, parse_size
from firsttouch.tools.bench import NAMES
from firsttouch.tools.cli import output
from firsttouch.tools.cli.output import BadUsageError, Parser, Progress

if TYPE_CHECKING:
    from firsttouch.tools.bench.common import Section

_USAGE = "firsttouch bench [EXPERIMENT ...] [options]"

_DESCRIPTION = """\
Run classic experiments on the memory behind arrays. Each prints its tables and
a short conclusion for this machine. Without a name the experiments are listed;
--quick alone runs all of them, in under three minutes.
"""

_EXAMPLES = """\
for example:
  firsttouch bench                          list the experiments
  firsttouch bench zeros
  firsttouch bench zeros triad --quick
  firsttouch bench zeros --sizes 64KiB,1MiB,"2 GiB"
  firsttouch bench all --json figures.json
"""


def main(words: Sequence[str]) -> int:
    """List the experiments, or run those that were named."""
    given = _parser().parse(words)
    names = given.names or (["all"] if given.quick or given.sizes else [])
    for name in names:
        if name != "all" and name not in NAMES:
            raise BadUsageError(f"bench: unknown experiment {name!r}{did_you_mean(name, [*NAMES, 'all'])}")
    if not names:
        print("experiments:", *(_row(name, question) for name, question in NAMES.items()), sep="\n")
        print("\nfirsttouch bench NAME runs one of them, firsttouch bench all every one")
        return 0
    out = output.checked(given, "bench", "numpy", "rich")

    from firsttouch.tools.bench.common import Settings
    from firsttouch.tools.measuring.machine import describe

    sections, chosen = dict[str, "Section"](), list(NAMES if "all" in names else dict.fromkeys(names))
    for name in chosen:
        try:
            module = importlib.import_module(f"firsttouch.tools.bench.{name}")
            section: Section = module.run(Settings(given.quick, given.sizes, Progress(name, out.quiet).done))
        except (RuntimeError, ValueError) as error:  # the other experiments may still succeed
            speak.write(sys.__stderr__, f"firsttouch: bench: {name}: {error}\n")
            continue
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted in {name}; no file is written") from None
        sections[name] = section
        if out.prints:
            print(f"{name}: {section.title}\n")
            out.show(section.tables, [], section.notes)
            print(flush=True)
    if sections:
        about = {"machine": describe(), "date": datetime.date.today().isoformat()}
        out.save(lambda: about | {"experiments": [_figures(*each) for each in sections.items()]})
    return 0 if len(sections) == len(chosen) else 1


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
    output.add(parser)
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of sizes, in bytes, smallest first."""
    try:
        return tuple(sorted({max(8, parse_size(word.strip())) for word in text.split(",")}))
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _row(name: str, question: str) -> str:
    return textwrap.fill(question, 80, initial_indent=f"  {name:11}  ", subsequent_indent=" " * 15)


def _figures(name: str, section: Section) -> dict[str, Any]:
    tables = [asdict(table) for table in section.tables]
    return {"name": name, "title": section.title, "tables": tables, "notes": section.notes, "raw": section.raw}

"""`firsttouch bench`: the classic experiments on the memory behind arrays, on this machine."""

import argparse
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _firsttouch_start import speak
from firsttouch.cli.parser import BadUsageError, Parser, guess

if TYPE_CHECKING:
    from firsttouch.measuring.report import Section

_USAGE = "firsttouch bench [EXPERIMENT ...] [options]"

_DESCRIPTION = """\
Run classic experiments on the memory behind arrays, and say what they show on this machine. Each
prints its tables and, in a sentence or two, the answer. Without a name they are listed; with
--quick alone all of them run, in under three minutes.
"""

_EXAMPLES = """\
for example:
  firsttouch bench                                  which experiments there are
  firsttouch bench zeros
  firsttouch bench zeros triad --quick --plot out.png
  firsttouch bench zeros --sizes 64KiB,1MiB,"2 GiB"
  firsttouch bench all --json figures.json
  firsttouch bench --quick                          the same as bench all --quick
"""


def main(words: Sequence[str]) -> int:
    """List the experiments, or run what is named."""
    parser = _parser()
    given = parser.parse(words)
    names = _names(given)
    if not names:
        print(_listing(), end="")
        return 0
    _check(given, names)
    sections: list[Section] = []
    failed: list[str] = []
    for name in names:
        try:
            sections.append(_run(name, given))
        except RuntimeError as error:  # of a worker: the other experiments may well do
            failed.append(name)
            speak.write(sys.__stderr__, f"firsttouch: bench: {name} failed: {error}\n")
            continue
        if given.json != "-":
            _show(sections[-1], quiet=given.quiet)
    _save(given, sections)
    return 1 if failed else 0


def _parser() -> Parser:
    parser = Parser("bench", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("names", nargs="*", metavar="EXPERIMENT", help="which to run, or all")
    add("--sizes", metavar="SIZES", help='of an array, as in 4KiB,1MiB,"2 GiB" (default: what suits each experiment)')
    add("--quick", action="store_true", help="few sizes and rounds: the direction, not the figure")
    add("--json", metavar="FILE", help="write every figure as JSON, too; - for standard output, instead of the tables")
    add("--plot", metavar="FILE", help="draw the outcome, as .png, .svg or .pdf")
    add("-q", "--quiet", action="store_true", help="only the answers in words")
    return parser


def _names(given: argparse.Namespace) -> list[str]:
    """The experiments that are meant, each once; none where they are to be listed."""
    from firsttouch.experiments import NAMES

    names = given.names or (["all"] if given.quick or given.sizes else [])
    for name in names:
        if name != "all" and name not in NAMES:
            near = guess(name, [*NAMES, "all"]) or f": there are {', '.join(NAMES)}"
            raise BadUsageError(f"bench: no experiment {name!r}{near}")
    return list(NAMES) if "all" in names else list(dict.fromkeys(names))


def _listing() -> str:
    from firsttouch.experiments import NAMES

    width = max(map(len, NAMES), default=0)
    rows = "\n".join(f"  {name:{width}}  {question}" for name, question in NAMES.items())
    return f"experiments:\n{rows}\n\nfirsttouch bench NAME runs one of them, firsttouch bench all every one\n"


def _check(given: argparse.Namespace, names: Sequence[str]) -> None:
    """Find out before anything runs what would stop it at the end."""
    from firsttouch.experiments import sizes

    needed = ["rich", *(["matplotlib"] if given.plot else [])]
    for module in needed:
        if importlib.util.find_spec(module) is None:
            raise BadUsageError(f"bench: needs {module}: pip install 'firsttouch[measure]'")
    for file in (given.json, given.plot):
        folder = Path(file).parent if file and file != "-" else None
        if folder is not None and not folder.is_dir():
            raise BadUsageError(f"bench: could not write {file}: there is no directory {folder}")
    try:
        given.bytes = None if given.sizes is None else sizes.parse(given.sizes)
        for name in names:
            experiment = importlib.import_module(f"firsttouch.experiments.{name}")
            sizes.check(given.bytes or (), name, getattr(experiment, "ARRAYS", 1))
    except ValueError as error:
        raise BadUsageError(f"bench: {error}") from None


def _run(name: str, given: argparse.Namespace) -> "Section":
    """One experiment, with a bar on standard error while somebody watches."""
    from rich.console import Console
    from rich.progress import Progress

    from firsttouch.experiments.settings import Settings
    from firsttouch.measuring.conduct import conduct

    module = importlib.import_module(f"firsttouch.experiments.{name}")
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=given.quiet or not console.is_terminal) as bar:
        task = bar.add_task(name, total=1.0)
        settings = Settings(given.quick, given.bytes, lambda done: bar.update(task, completed=done))
        return conduct(lambda: module.run(settings), given.quick)


def _show(section: "Section", quiet: bool) -> None:
    """The tables, then what they say."""
    from rich.console import Console

    from firsttouch.measuring.console import plain, show

    console = Console(highlight=False, markup=False)
    if not quiet:
        console.print(f"\n{plain(section.title)}", style="bold")
        for table in section.tables:
            show(table, console)
    for verdict in section.verdicts:
        console.print(f"  {verdict.outcome}: {plain(verdict.bar)}: {plain(verdict.figure)}")
    for note in section.notes:
        console.print(f"  {plain(note)}")


def _save(given: argparse.Namespace, sections: Sequence["Section"]) -> None:
    """The files that were asked for."""
    from firsttouch.measuring.machine import describe
    from firsttouch.measuring.picture import save

    if given.json:
        found: dict[str, Any] = {"machine": describe(), "experiments": [section.as_dict() for section in sections]}
        text = json.dumps(found, indent=1) + "\n"
        if given.json == "-":
            print(text, end="")
        else:
            _write(given.json, lambda: Path(given.json).write_text(text))
    pictures = [picture for section in sections for picture in section.pictures]
    if given.plot and pictures:
        _write(given.plot, lambda: save(pictures, Path(given.plot)))


def _write(file: str, do: Callable[[], object]) -> None:
    try:
        do()
    except (OSError, ValueError) as error:
        raise BadUsageError(f"bench: could not write {file}: {speak.reason(error)}") from None

"""How commands take options, with one-line errors and suggestions, and what those that show figures print and write."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shlex
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from _firsttouch_start import speak
from firsttouch._firsttouch import did_you_mean
from firsttouch._internal import units
from firsttouch.tools.cli import BadUsageError as BadUsageError
from firsttouch.tools.cli import files

if TYPE_CHECKING:
    from rich.console import Console

    from firsttouch.tools.measuring.report import Picture, Table


class Parser(argparse.ArgumentParser):
    """Parses the options of one command."""

    def __init__(self, command: str, description: str, usage: str, examples: str) -> None:
        super().__init__(
            prog=f"firsttouch {command}",
            usage=usage,
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.command = command

    def error(self, message: str) -> NoReturn:
        """Exit with a line that names the command."""
        raise BadUsageError(f"{self.command}: {message}")

    def options(self) -> list[str]:
        """Return the names of the options."""
        return [name for action in self._actions for name in action.option_strings]

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse all words; an unexpected one is an error with a suggestion."""
        found, left = self.parse_known_args(list(words))
        if left:
            word = left[0].partition("=")[0]
            what = "unknown option" if word.startswith("-") else "unexpected argument"
            self.error(f"{what} {word}{did_you_mean(word, self.options())}")
        return found


@dataclass(frozen=True)
class Output:
    """Where the outcome goes: absolute names of files; `json` may be - for standard output."""

    command: str
    json: str | None = None
    html: str | None = None
    plot: str | None = None
    quiet: bool = False

    @property
    def prints(self) -> bool:
        """Whether text and tables go to standard output, which JSON may have for itself."""
        return self.json != "-"

    def show(
        self, tables: Sequence[Table], notes: Sequence[str], lead: Sequence[str], stream: TextIO | None = None
    ) -> None:
        """Print the tables and notes, unless that was to be quiet, and then the conclusions; write the page."""
        self.page(tables, notes, lead)
        if not self.prints:
            return
        screen = console(stream)
        if not self.quiet:
            for table in tables:
                table.show(screen)
            for note in notes:
                screen.print(f"- {note}")
            if notes:
                screen.print()
        for sentence in lead:
            screen.print(sentence, style="bold")

    def page(self, tables: Sequence[Table], notes: Sequence[str], lead: Sequence[str]) -> None:
        """Write the same as a page, if requested."""
        if self.html is not None:
            from firsttouch.tools.measuring.report import page

            content = page(shlex.join(["firsttouch", *sys.argv[1:]]), lead, tables, notes)
            self._write(self.html, lambda path: path.write_text(content, encoding="utf-8"))

    def save(self, data: Callable[[], Any], picture: Picture | None = None) -> None:
        """Write the requested files."""
        if self.json is not None:
            content = json.dumps(data(), indent=1, allow_nan=False) + "\n"
            if self.json == "-":
                print(content, end="")  # does nothing if standard output is closed
            else:
                self._write(self.json, lambda path: path.write_text(content, encoding="utf-8"))
        if self.plot is not None and picture is not None:
            self._write(self.plot, picture.save)

    def _write(self, name: str, do: Callable[[Path], object]) -> None:
        try:
            do(Path(name))
        except (OSError, ValueError) as error:  # the folder may be gone since the check, or the format be unknown
            raise BadUsageError(f"{self.command}: cannot write {name}: {speak.reason(error)}") from None


def add(parser: Parser, plot: bool = False, html: bool = False) -> None:
    """Add the options; with `plot` for a command that has a picture, with `html` for one that has a page."""
    option = parser.add_argument
    option("--json", metavar="FILE", help="also write all figures as JSON; - for standard output, instead of text")
    if html:
        option("--html", metavar="FILE", help="also write the outcome as an HTML page")
    if plot:
        option("--plot", metavar="FILE", help="plot the results, as .png, .svg or .pdf")
    option("-q", "--quiet", action="store_true", help="print only the conclusion: no progress, no tables")


def checked(given: argparse.Namespace, command: str, *needed: str) -> Output:
    """Return the options' values; reject files that cannot be written, and missing libraries."""
    named = {"--json": given.json, "--html": getattr(given, "html", None), "--plot": getattr(given, "plot", None)}
    need(command, *needed, *(["matplotlib"] if named["--plot"] else []))
    if named["--plot"] and not named["--plot"].endswith((".png", ".svg", ".pdf")):  # now, not after the runs
        raise BadUsageError(f"{command}: --plot draws .png, .svg or .pdf, not {named['--plot']}")
    paths = {
        option[2:]: None if name is None else files.checked(command, option, name) for option, name in named.items()
    }
    return Output(command, paths["json"], paths["html"], paths["plot"], given.quiet)


def need(command: str, *modules: str) -> None:
    """Report in one line which of these libraries are missing, and how to install them."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise BadUsageError(f"{command} needs {units.listed(missing)}: python -m pip install {' '.join(missing)}")


def console(stream: TextIO | None = None) -> Console:
    """Return a console of rich's. Sentences are wrapped on a terminal, or where COLUMNS is set."""
    from rich.console import Console

    known = (stream or sys.stdout).isatty() or "COLUMNS" in os.environ
    width = None if known else 120
    return Console(file=stream, width=width, soft_wrap=not known, highlight=False, markup=False, emoji=False)


def place(file: str, line: int) -> str:
    """Return file and line, the file as it is imported if it is installed, or relative to the current directory."""
    # The installed packages first: their folder is often below the current one, and its path is long.
    folders = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    with contextlib.suppress(OSError):  # it may have been removed
        folders.append(os.getcwd())
    for folder in folders:
        if file.startswith(os.path.join(folder, "")):
            return f"{os.path.relpath(file, folder)}:{line}"
    return f"{file}:{line}"


#: Seconds after which a line says how far a measurement is.
_SILENCE = 5.0


class Progress:
    """Says on standard error what a measurement does, and now and then how far it is."""

    def __init__(self, what: str, quiet: bool = False) -> None:
        self._what, self._quiet, self._spoke = what, quiet, time.monotonic()

    def say(self, text: str) -> None:
        """Print a line."""
        self._spoke = time.monotonic()
        if not self._quiet:
            speak.write(sys.stderr, f"{text}\n")

    def done(self, part: float) -> None:
        """Tell the completed fraction, from 0 to 1."""
        if time.monotonic() - self._spoke > _SILENCE:
            self.say(f"{self._what}: {100 * part:.0f} % done")

"""Options shared by all commands that measure or show figures, checked beforehand, and what these commands print."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import sys
import sysconfig
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from _firsttouch_start import speak
from firsttouch._internal import units
from firsttouch.tools.cli import files
from firsttouch.tools.cli.parser import BadUsageError, Parser

if TYPE_CHECKING:
    from rich.console import Console

    from firsttouch.tools.measuring.report import Page

#: The options with a value, for `program.split`.
WITH_VALUE = ("--json", "--html", "--plot")
#: Seconds between two lines about the progress where there is no terminal.
_SILENCE = 10.0


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

    def show(self, page: Page, stream: TextIO | None = None) -> None:
        """Print the tables and notes, unless that was to be quiet, and then the conclusions."""
        if not self.prints:
            return
        screen, stream = console(stream), stream or sys.stdout
        if not self.quiet:
            for table in page.tables:
                table.show(screen)
            for note in page.notes:
                screen.print(wrapped(f"- {note}", stream), soft_wrap=True)
            if page.notes:
                screen.print()
        for sentence in page.lead:
            screen.print(wrapped(sentence, stream), style="bold", soft_wrap=True)

    def save(self, data: Callable[[], Any], page: Page) -> None:
        """Write the requested files."""
        if self.json is not None:
            content = json.dumps(data(), indent=1, allow_nan=False) + "\n"
            if self.json == "-":
                print(content, end="")  # does nothing if standard output is closed
            else:
                self._write(self.json, lambda path: path.write_text(content, encoding="utf-8"))
        if self.html is not None:
            html = page.html()
            self._write(self.html, lambda path: path.write_text(html, encoding="utf-8", errors="backslashreplace"))
        if self.plot is not None and page.pictures:
            from firsttouch.tools.measuring.report import save_pictures

            self._write(self.plot, lambda path: save_pictures(page.pictures, path))

    def _write(self, name: str, do: Callable[[Path], object]) -> None:
        try:
            do(Path(name))
        except OSError as error:  # the folder may be gone since the check, or the disk full
            raise BadUsageError(f"{self.command}: cannot write {name}: {speak.reason(error)}") from None


def add(parser: Parser, plot: bool = False) -> None:
    """Add the options; with `plot` for a command that has pictures."""
    option = parser.add_argument
    option("--json", metavar="FILE", help="also write all figures as JSON; - for standard output, instead of text")
    option("--html", metavar="FILE", help="write a self-contained HTML page")
    if plot:
        option("--plot", metavar="FILE", help="plot the results, as .png, .svg or .pdf")
    option("-q", "--quiet", action="store_true", help="print only the conclusion: no progress, no tables")


def checked(given: argparse.Namespace, command: str, *needed: str) -> Output:
    """Return the options' values; reject files that cannot be written, and missing libraries."""
    plot = getattr(given, "plot", None)
    pictures = plot or (given.html and "plot" in given)
    need(command, *needed, *(["jinja2"] if given.html else []), *(["matplotlib"] if pictures else []))
    named = {"--json": given.json, "--html": given.html, "--plot": plot}
    paths = {option: _file(command, option, name) for option, name in named.items() if name is not None}
    for option, file in paths.items():
        if (other := next(name for name in paths if paths[name] == file)) != option:
            raise BadUsageError(f"{command}: {other} and {option} name the same file: {file}")
    if plot is not None:
        _check_ending(command, plot)
    return Output(command, paths.get("--json"), paths.get("--html"), paths.get("--plot"), given.quiet)


def need(command: str, *modules: str) -> None:
    """Report in one line which of these libraries are missing, and how to install them."""
    missing = [module for module in dict.fromkeys(modules) if importlib.util.find_spec(module) is None]
    if missing:
        raise BadUsageError(f"{command} needs {units.listed(missing)}: python -m pip install {' '.join(missing)}")


def _file(command: str, option: str, name: str) -> str:
    if not name or (name == "-" and option != "--json"):
        raise BadUsageError(f"{command}: {option} needs a file name, not {name!r}")
    path = files.absolute(name, command, option)
    if path != "-":
        files.refuse(command, name, path)
    return path


def _check_ending(command: str, name: str) -> None:
    """Check the extension, which selects the format."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    ending = os.path.splitext(name)[1].lower()
    if ending.lstrip(".") not in known:
        got = f"unknown picture format {ending}" if ending else "the file name has no extension"
        raise BadUsageError(f"{command}: --plot {name}: {got}; use .png, .svg or .pdf")


def console(stream: TextIO | None = None) -> Console:
    """Return a console of rich's; a stream that is no terminal is as wide as COLUMNS says, or 120."""
    from rich.console import Console

    known = (sys.stdout if stream is None else stream).isatty() or "COLUMNS" in os.environ
    return Console(file=stream, width=None if known else 120, highlight=False, markup=False, emoji=False)


def wrapped(sentence: str, stream: TextIO | None) -> str:
    """Return the sentence broken between words on a terminal, or where COLUMNS is set; elsewhere it is one line."""
    if stream is None or not (stream.isatty() or "COLUMNS" in os.environ):
        return sentence
    width = shutil.get_terminal_size().columns
    kept = sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    filled = textwrap.fill(kept, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return filled.replace("\N{NO-BREAK SPACE}", " ")


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


class Progress:
    """Shows how far a measurement is on standard error: as a bar on a terminal, elsewhere as a line now and then."""

    def __init__(self, what: str, quiet: bool = False) -> None:
        from rich import progress
        from rich.console import Console

        self.part, self._what = 0.0, what
        self._console = Console(stderr=True, highlight=False, markup=False, quiet=quiet)
        self._begun = self._said = time.monotonic()
        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("left"),
            console=self._console,
            transient=True,
            refresh_per_second=2,  # drawing disturbs what is measured
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task(what, total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(wrapped(text, sys.stderr), soft_wrap=True)

    def done(self, part: float) -> None:
        """Set the completed fraction, from 0 to 1."""
        self.part = part
        self._bar.update(self._task, total=1.0, completed=part)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._said >= _SILENCE and 0 < part < 1:
            self._said = now
            left = (now - self._begun) * (1 - part) / part
            self.say(f"{self._what}: {100 * part:.0f} %, about {units.seconds(left)} left")

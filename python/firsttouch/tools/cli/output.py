"""Options shared by all measuring commands: --json, --html, --plot and -q, checked before anything is measured."""

import argparse
import importlib.util
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _firsttouch_start import speak
from firsttouch.tools.cli import files
from firsttouch.tools.cli.parser import BadUsageError, Parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsttouch.tools.measuring.picture import Picture

#: The options with a value, for `program.split`.
WITH_VALUE = ("--json", "--html", "--plot")


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

    def save_json(self, found: Callable[[], Any]) -> None:
        """Write the result of `found` if JSON was requested."""
        if self.json is None:
            return
        content = json.dumps(found(), indent=1, allow_nan=False) + "\n"
        if self.json == "-":
            print(content, end="")
        else:
            self._write(self.json, lambda path: path.write_text(content, encoding="utf-8"))

    def save_html(self, page: Callable[[], str]) -> None:
        """Write the page if it was requested."""
        if self.html is not None:
            self._write(self.html, lambda path: path.write_text(page(), encoding="utf-8", errors="backslashreplace"))

    def save_plot(self, pictures: "Sequence[Picture]") -> None:
        """Draw the pictures into one file if that was requested."""
        if self.plot is not None and pictures:
            from firsttouch.tools.measuring.picture import save

            self._write(self.plot, lambda path: save(pictures, path))

    def _write(self, name: str, do: Callable[[Path], object]) -> None:
        try:
            do(Path(name))
        except OSError as error:  # the folder may be gone since the check, or the disk full
            raise BadUsageError(f"{self.command}: cannot write {name}: {speak.reason(error)}") from None


def add(parser: Parser, html: bool = True) -> None:
    """Add the options; with `html=False` for a command without a page."""
    option = parser.add_argument
    option("--json", metavar="FILE", help="also write all figures as JSON; - for standard output, instead of text")
    if html:
        option("--html", metavar="FILE", help="write a self-contained HTML page with tables and plots")
    option("--plot", metavar="FILE", help="plot the results, as .png, .svg or .pdf")
    option("-q", "--quiet", action="store_true", help="print only the conclusion: no progress, no tables")


def checked(command: str, given: argparse.Namespace) -> Output:
    """Return the options' values; reject files that cannot be written, and missing libraries."""
    pages = getattr(given, "html", None)
    need(command, "numpy", "rich", *(["matplotlib"] if given.plot or pages else []))
    named = {"--json": given.json, "--html": pages, "--plot": given.plot}
    files = {option: _file(command, option, name) for option, name in named.items() if name is not None}
    for option, file in files.items():
        if (other := next(name for name in files if files[name] == file)) != option:
            raise BadUsageError(f"{command}: {other} and {option} name the same file: {file}")
    if given.plot is not None:
        _check_ending(command, given.plot)
    return Output(command, files.get("--json"), files.get("--html"), files.get("--plot"), given.quiet)


def need(command: str, *modules: str, otherwise: str = "") -> None:
    """Report in one line which of these libraries is missing, how to install it, and what else would do."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            brings = module if module == "numpy" else '"firsttouch[measure]"'
            raise BadUsageError(f"{command} needs {module}: python -m pip install {brings}{otherwise}")


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

"""`firsttouch run`: put the options in the environment and become the program."""

from __future__ import annotations

import os
import sys

from _firsttouch_start import VARIABLE, speak
from firsttouch.tools import preload
from firsttouch.tools.cli import BadUsageError, files, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from firsttouch.tools.cli.output import Parser
    from firsttouch.tools.cli.program import Program

_USAGE = """firsttouch run [options] script.py | -m module | -c code | program
           [arguments of the program]"""

_DESCRIPTION = """\
Run an unmodified NumPy program on pooled memory: freed memory is reused,
instead of being mapped and faulted in again for every temporary array. The
program runs as under `python`; a short report follows on standard error.
Processes that it starts with multiprocessing, concurrent.futures or joblib use
pooled memory as well.

The large blocks of any other program's malloc, and of the programs that it
starts, come from a pool by means of LD_PRELOAD (Linux with glibc).
"""

_EXAMPLES = """\
for example:
  firsttouch run script.py data.csv         as python script.py data.csv
  firsttouch run -m package.module          as python -m package.module
  firsttouch run --json report.json -q script.py
  firsttouch run --html report.html script.py
  firsttouch run --allocator mimalloc script.py
  firsttouch run --allocator 'pool(decay=10, max_idle="1 GiB")' script.py
  firsttouch run --limit auto script.py     a MemoryError, not a killed process
  firsttouch run --json report-%p.json script.py      a file for each process
  firsttouch run ./simulation input.txt     a program in C, C++, Fortran, ...
  firsttouch run --all script.py            all large blocks, not only of NumPy
  mpirun -n 4 firsttouch run --json rank-%r.json script.py
  python -W error -m firsttouch run script.py         python's options go before

options of firsttouch come before the program; everything after it is passed to
the program. Options for every run may stand in ~/.config/firsttouch/run and in
the variable FIRSTTOUCH_OPTIONS.
"""

#: The options: what stands for the value, if they have one, and the help.
_OPTIONS = {
    "--json": (
        "FILE",
        (
            "also write the report as JSON; %%r stands for the MPI or Slurm rank, %%p for the process"
            " (then each process that exits normally writes its own), - for standard output"
        ),
    ),
    "--html": ("FILE", "also write the report as an HTML page, once the program has ended"),
    "--allocator": (
        "EXPRESSION",
        (
            "allocator that serves the arrays, as an expression: mimalloc, 'pool(pages(huge=\"thp\"), decay=30)'"
            " (default: pool())"
        ),
    ),
    "--limit": (
        "SIZE",
        (
            "raise MemoryError where all processes of the program hold more, as in 4GiB, and name the lines that made"
            " the largest blocks; auto is what the machine or container has left, less a reserve"
        ),
    ),
    "--quiet": (None, "print no report on standard error"),
    "--lines": (None, "record the lines of live arrays, for firsttouch why PID"),
    "--all": (None, "serve all large blocks of a Python program, not only NumPy's arrays"),
}
_WITH_VALUE = [option for option, (value, _) in _OPTIONS.items() if value]


def main(words: Sequence[str]) -> int:
    """Check what can be checked, then become the program, or wait for it where more is to be told after it."""
    own, found = program.split(words, _WITH_VALUE)
    given = _parsed(own)
    if given is None or found is None:
        named, found = program.parse(_parser(), words)
        given = {name: value for name, value in vars(named).items() if value not in (None, False)}
    _add_usual(given, found)
    settings = {name: check(given[name]) for name, check in _CHECKS.items() if name in given}
    start = _starter(found, given, settings)
    if "limit" not in given and "html" not in given:
        start()

    def wait() -> int:
        if "limit" not in given:
            return program.wait_for(start)
        from firsttouch.tools.cli import budget

        return budget.run(settings, start)

    return program.passed_on(_paged(given["html"], settings, wait) if "html" in given else wait())


def _paged(name: str, settings: dict[str, Any], run: Callable[[], int]) -> int:
    """Run the program and write its report as a page, and as JSON if requested; return its status."""
    import json
    import tempfile

    from firsttouch.tools.cli.output import Output
    from firsttouch.tools.measuring.report import Table

    pattern = settings.get("json", "")
    if files.has_fields(pattern):
        raise BadUsageError("run: --html shows the report of one process: beside it, --json takes no %r and %p")
    out = Output("run", json=pattern or None, html=files.checked("run", "--html", name))
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        path = settings["json"] = os.path.join(folder, "report.json")
        status = run()
        try:
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
        except FileNotFoundError:
            if not files.rank():  # the other ranks of MPI report nothing
                speak.line("no page: the program left no report, as it was killed, ended by os._exit or never started")
            return status
    out.page([Table("", (), list(report["rows"].items()))], report["remarks"], [report["conclusion"]])
    out.save(lambda: report)
    return status


def _starter(found: Program, given: dict[str, Any], settings: dict[str, Any]) -> Callable[[], NoReturn]:
    """Return what becomes the program."""
    path, words = found.executable, found.words
    asked = [option for option in _OF_PYTHON if option in settings]
    if path is None:
        words = tuple(program.python(found))
        if "all" not in given:
            return lambda: program.start(words, settings)
        path = words[0]
    elif asked:
        raise BadUsageError(f"run: --{asked[0]} is for Python programs, and {path} is not one")
    why = preload.missing() or _obstacle(path)
    if why:
        raise BadUsageError(f"run: cannot serve {path}: {why}")
    if asked:  # which the start-up hook obeys, and reports on
        return lambda: program.become(path, words, _preloaded({"quiet": True}, program.environment(settings)))
    outer = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return lambda: program.become(path, words, _preloaded(settings, outer))


#: Where options for every run stand: the variable's precede the file's, and the command line's precede both.
_VARIABLE, _FILE = "FIRSTTOUCH_OPTIONS", "~/.config/firsttouch/run"
#: Options that other programs than Python's cannot obey.
_OF_PYTHON = ("allocator", "limit", "lines")


def _add_usual(given: dict[str, Any], found: Program) -> None:
    """Add the options for every run, where the command line has no others and the program can obey them."""
    unheard = (*_OF_PYTHON, "all") if found.executable is not None else ()
    for place, text in ((f"the variable {_VARIABLE}", os.environ.get(_VARIABLE, "")), (_FILE, _of_file())):
        if not text.strip():
            continue
        import shlex

        try:
            usual = _parsed(shlex.split(text, comments=True))
        except ValueError:  # a quotation that is not closed
            usual = None
        if usual is None:
            raise BadUsageError(f"run: {place}: only options of firsttouch run may stand there, not {text.strip()!r}")
        for name, value in usual.items():
            if name not in unheard:
                given.setdefault(name, value)


def _of_file() -> str:
    try:
        with open(os.path.expanduser(_FILE), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:  # also where HOME is another user's
        return ""


def _parsed(words: Sequence[str]) -> dict[str, Any] | None:
    """Parse options in their plain forms, by name. None stands for everything else, which argparse explains.

    To import argparse takes longer than all else before the program starts.
    """
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = ("--quiet" if word == "-q" else word).partition("=")
        if option not in _OPTIONS or (equals and option not in _WITH_VALUE):
            return None
        if option in _WITH_VALUE and not equals:
            value = next(rest, "--")
        if value.startswith("-") and value != "-":
            return None
        given[option[2:]] = value if option in _WITH_VALUE else True
    return given


def _parser() -> Parser:
    from firsttouch.tools.cli.output import Parser

    parser = Parser("run", _DESCRIPTION, _USAGE, _EXAMPLES)
    for option, (metavar, text) in _OPTIONS.items():
        if metavar:
            parser.add_argument(option, metavar=metavar, help=text)
        else:
            parser.add_argument(*(["-q"] if option == "--quiet" else []), option, action="store_true", help=text)
    return parser


def _limit(text: str) -> int | str:
    if text.strip().lower() == "auto":
        return "auto"
    from firsttouch import _firsttouch

    try:
        limit, counted = _firsttouch.parse_size(text), _firsttouch.SMALL_LIMIT
    except (ValueError, OverflowError) as error:
        raise BadUsageError(f"run: --limit: {error}") from None
    if limit < counted:
        raise BadUsageError(
            f"run: --limit: {limit:,} bytes would serve no array, as those of {counted >> 10} KiB and more are counted:"
            " give a unit, as in 4GiB, or auto"
        )
    return int(limit)


#: How the values of options become the settings to pass on.
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "quiet": bool,
    "json": lambda name: files.checked("run", "--json", name, fields=True),
    "allocator": lambda expression: program.checked(expression, "run"),
    "lines": bool,
    "limit": _limit,
}

#: The type of the program header that names the dynamic loader.
_INTERPRETER = 3
#: The number of bytes of a program that are examined: its headers come first.
_LOOKED_AT = 1 << 20


def _obstacle(path: str) -> str | None:
    """Return why the library cannot serve a program."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LOOKED_AT)
    except OSError as error:
        return speak.reason(error)
    is_static = content.startswith(program.ELF) and not _has_loader(content)  # a script's interpreter is not examined
    return "it is linked statically, so its malloc cannot be replaced" if is_static else None


def _has_loader(content: bytes) -> bool:
    """Return whether a program names a dynamic loader. Assumes a 64-bit file."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(content[at : at + size], sys.byteorder)

    table, length, count = number(32, 8), number(54, 2), number(56, 2)
    return any(number(header, 4) == _INTERPRETER for header in range(table, table + length * count, length or 1))


def _preloaded(settings: dict[str, Any], outer: dict[str, str]) -> dict[str, str]:
    """Return the environment with the library before anything else that is preloaded, and with its settings."""
    file = preload.FILE
    if set(file) & set(" :"):
        raise BadUsageError(f"run: the dynamic loader cannot preload {file}: its name contains a space or a colon")
    others = [other for other in outer.get("LD_PRELOAD", "").replace(":", " ").split() if other != file]
    settings = program.of_rank(settings)
    given = outer.get(preload.VARIABLE, "").partition("report=")[0]  # what follows is that of an outer run
    words = given.split()
    words.append(f"report={os.getpid()}")
    if settings.get("quiet"):
        words.append("quiet=1")
    if settings.get("json"):  # the last one, because the name of a file may contain anything
        words.append(f"json={settings['json']}")
    return {**outer, "LD_PRELOAD": ":".join([file, *others]), preload.VARIABLE: " ".join(words)}

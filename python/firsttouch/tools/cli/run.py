"""`firsttouch run`: put the options in the environment and become the program."""

from __future__ import annotations

import os
import stat
import sys

from _firsttouch_start import VARIABLE, speak
from firsttouch.tools import inherited, preload
from firsttouch.tools.cli import BadUsageError, files, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from firsttouch.tools.cli.parser import Parser
    from firsttouch.tools.cli.program import Program

_WITH_VALUE = ("--json", "--html", "--allocator", "--limit", "--max-idle", "--decay", "--threshold")
_FLAGS = {"-q": "quiet", "--quiet": "quiet", "--all": "all", "--lines": "lines"}

_USAGE = """firsttouch run [options] script.py | -m module | -c code | program
           [arguments of the program]"""

#: More seconds than this are no time to the native code, which counts them in 64 bits.
_FOREVER = 2.0**64

_DESCRIPTION = """\
Run an unmodified NumPy program on pooled memory: freed memory is reused, instead of being mapped
and faulted in again for every temporary array. The program runs as under `python`; a short
report follows on standard error. Processes that it starts with multiprocessing,
concurrent.futures or joblib use pooled memory as well.

The large blocks of any other program's malloc, and of the programs that it starts, come from a
pool by means of LD_PRELOAD (Linux with glibc).
"""

_EXAMPLES = """\
for example:
  firsttouch run script.py data.csv         as python script.py data.csv
  firsttouch run -m package.module          as python -m package.module
  firsttouch run --json report.json -q script.py
  firsttouch run --html report.html script.py
  firsttouch run --allocator mimalloc script.py
  firsttouch run --limit auto script.py     a MemoryError, not a killed process
  firsttouch run --json report-%p.json script.py      a file for each process
  firsttouch run ./simulation input.txt     a program in C, C++, Fortran, ...
  firsttouch run --all script.py            all large blocks, not only of NumPy
  mpirun -n 4 firsttouch run --json rank-%r.json script.py
  python -W error -m firsttouch run script.py         python's options go before

options of firsttouch come before the program; everything after it is passed to the program. Those for every run
may stand in /etc/firsttouch/run, ~/.config/firsttouch/run or the variable FIRSTTOUCH_OPTIONS.
"""


def main(words: Sequence[str]) -> int:
    """Check what can be checked, then become the program, or wait for it where more is to be told after it."""
    given: Any
    own, found = program.split(words, _WITH_VALUE)
    given = _parsed(own)
    if given is None or found is None:
        given, found = program.parse(_parser(), words, _WITH_VALUE)
    _add_usual(given, found)

    def start() -> NoReturn:
        _start(given, found)

    def run() -> int:
        if given.limit is None:
            return program.wait_for(start)
        from firsttouch.tools.cli import budget

        return budget.run(given, start)

    if found.executable is not None:
        _refuse_pythons(given, found.executable)
    if given.limit is not None:
        _limit(given.limit)
    if given.html is not None:
        from firsttouch.tools.cli import page

        return page.of_run(given, found, run)
    return start() if given.limit is None else program.passed_on(run())


def _start(given: Any, found: Program) -> NoReturn:
    """Become the program."""
    settings = _settings(given)
    if found.executable is not None:
        _check(found.executable)
        _become(found.executable, found.words, settings | _of_library(given))
    if given.threshold is not None and not given.all:
        raise BadUsageError("run: --threshold is for programs other than Python's, or with --all")
    command = program.command()
    program.check(command)
    environment = program.environment(settings, found)
    if given.all:
        _check(command[0])
        only = {name: settings[name] for name in ("quiet", "max_idle", "decay") if name in settings}
        environment = _environment(only | _of_library(given), environment)
    program.become([*command, *found.words], environment)


#: Files with options for every run; the second precedes the first, the variable both, and the command line all.
_FILES = ("/etc/firsttouch/run", "~/.config/firsttouch/run")
_OPTIONS = "FIRSTTOUCH_OPTIONS"
#: Options of which the line's replace the usual ones.
_RIVALS = {"allocator": ("max_idle", "decay"), "max_idle": ("allocator",), "decay": ("allocator",)}


def _add_usual(given: Any, found: Program) -> None:
    """Add the options that hold for every run, where the command line has no others and the program can obey them."""
    unheard = {"allocator", "limit", "lines", "all"} if found.executable is not None else set()
    if given.html is not None:
        unheard.add("json")
    asked = given.threshold
    for place, text in reversed(_usual()):
        import shlex

        try:
            words = shlex.split(text, comments=True)
        except ValueError as error:
            raise BadUsageError(f"run: {place}: {error}") from None
        usual = _parsed(words)
        if usual is None:
            raise BadUsageError(f"run: {place}: only options of firsttouch run may stand there, not {' '.join(words)}")
        rivals = {rival for name in _RIVALS if getattr(given, name) is not None for rival in _RIVALS[name]}
        for name, value in vars(usual).items():
            if name not in unheard | rivals and getattr(given, name) in (None, False):
                setattr(given, name, value)
    if found.executable is None and not given.all:
        given.threshold = asked  # what it says about usual options is for other programs


def _usual() -> list[tuple[str, str]]:
    """Return where options for every run stand, and these."""
    found = []
    for name in _FILES:
        try:
            with open(os.path.expanduser(name), encoding="utf-8") as file:
                found.append((name, file.read()))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise BadUsageError(f"run: cannot read {name}: {speak.reason(error)}") from None
    found.append((f"the variable {_OPTIONS}", os.environ.get(_OPTIONS, "")))
    return [(place, text) for place, text in found if text]


class _Options:
    """The options, none of them given yet."""

    quiet = all = lines = False
    json = html = allocator = limit = max_idle = decay = threshold = accounts = None


def _parsed(words: Sequence[str]) -> _Options | None:
    """Parse options in their plain forms. None stands for everything else, which argparse explains.

    To import argparse takes longer than all else before the program starts.
    """
    given, rest = _Options(), list(words)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if word in _FLAGS:
            setattr(given, _FLAGS[word], True)
            continue
        if option not in _WITH_VALUE or not (equals or rest):
            return None
        value = value if equals else rest.pop(0)
        if value.startswith("-") and value != "-":
            return None
        setattr(given, option[2:].replace("-", "_"), value)
    return given


def _parser() -> Parser:
    from firsttouch.tools.cli.parser import Parser

    parser = Parser("run", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add(
        "--json",
        metavar="FILE",
        help="also write the report as JSON; %%r stands for the MPI or Slurm rank, %%p for the process"
        " (then each process that exits normally writes its own), - for standard output",
    )
    add("--html", metavar="FILE", help="also write the report as an HTML page, and wait for the program to do so")
    add("-q", "--quiet", action="store_true", help="print no report on standard error")
    add(
        "--allocator",
        metavar="EXPRESSION",
        help="allocator that serves the arrays, as an expression: mimalloc, 'pool(pages(huge=\"thp\"), decay=30)'"
        " (default: pool())",
    )
    add(
        "--limit",
        metavar="SIZE",
        help="raise MemoryError where all processes of the program hold more, as in 4GiB, and name the lines that made"
        " the largest blocks; auto is what the machine or container has left, less a reserve",
    )
    add(
        "--max-idle",
        metavar="SIZE",
        help='limit on idle memory, as in 512MiB or "4 GiB" (default: an eighth of the most that arrays used)',
    )
    add(
        "--decay",
        metavar="SECONDS",
        help="return idle memory to the system after about this time (default: 1), or never",
    )
    add("--lines", action="store_true", help="record the lines of live arrays, for firsttouch why PID")
    add("--all", action="store_true", help="serve all large blocks of a Python program, not only NumPy's arrays")
    add(
        "--threshold",
        metavar="SIZE",
        help="for other programs, or with --all: minimum size of blocks to serve, 16 KiB or more (default: 128 KiB)",
    )
    return parser


def _refuse_pythons(given: Any, path: str) -> None:
    """Refuse options that a program cannot obey that is not Python's."""
    for option in ("allocator", "limit", "lines"):
        if getattr(given, option) not in (None, False):
            inside = "; in the script, write firsttouch run in place of python" if program.interpreter(path) else ""
            raise BadUsageError(f"run: --{option} is for Python programs, and {path} is not one{inside}")


def _settings(given: Any) -> dict[str, Any]:
    """Return the settings to pass on; options that were not given are left out."""
    settings: dict[str, Any] = {}
    if given.quiet:
        settings["quiet"] = True
    if given.json is not None:
        settings["json"] = path = files.pattern(given.json)
        if path != "-":
            files.refuse("run", given.json, files.fill(path))
    if given.allocator is not None:
        for name in ("max_idle", "decay"):
            if getattr(given, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise BadUsageError(
                    f"run: {option} is for the default pool; with --allocator write it as pool({name}=...)"
                )
        settings["allocator"] = program.checked(given.allocator, "run")
    if given.lines:
        settings["lines"] = program.LINES_FROM
    if given.limit is not None:
        settings["limit"] = _limit(given.limit)
        settings["accounts"] = given.accounts
    if given.max_idle is not None:
        settings["max_idle"] = _size("--max-idle", given.max_idle)
    if given.decay is not None:
        settings["decay"] = _seconds(given.decay)
    return settings


def _of_library(given: Any) -> dict[str, Any]:
    """Return the settings of the preloaded library alone."""
    if given.threshold is None:
        return {}
    from firsttouch import _firsttouch

    threshold, least = _size("--threshold", given.threshold), _firsttouch.SMALL_LIMIT
    if threshold < least:
        raise BadUsageError(f"run: --threshold: {given.threshold} is below {least >> 10} KiB, the least that is served")
    return {"threshold": threshold}


def _size(option: str, text: str) -> int:
    from firsttouch import _firsttouch

    try:
        return _firsttouch.parse_size(text)
    except (ValueError, OverflowError) as error:
        raise BadUsageError(f"run: {option}: {error}") from None


def _limit(text: str) -> int | str:
    if text.strip().lower() == "auto":
        return "auto"
    from firsttouch import _firsttouch

    limit, counted = _size("--limit", text), _firsttouch.SMALL_LIMIT
    if limit < counted:
        raise BadUsageError(
            f"run: --limit: {limit:,} bytes would serve no array, as those of {counted >> 10} KiB and more are counted:"
            " give a unit, as in 4GiB, or auto"
        )
    return limit


def _seconds(text: str) -> float | None:
    if text.strip().lower() == "never":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < _FOREVER:
        raise BadUsageError(f"run: --decay: {text!r} is not a duration: give seconds, as in 0.5 or 30, or never")
    return seconds


#: The type of the program header that names the dynamic loader.
_INTERPRETER = 3
#: The number of bytes of a program that are examined: the names of its libraries come before its code.
_LOOKED_AT = 4 << 20


def _check(path: str) -> None:
    """Reject a program that the library cannot serve, with the reason."""
    why = preload.missing() or _obstacle(path)
    if why:
        raise BadUsageError(f"run: cannot serve {path}: {why}")


def _obstacle(path: str) -> str | None:
    mode = os.stat(path).st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        return "it is set-uid, and the dynamic loader ignores LD_PRELOAD for such programs"
    try:
        with open(path, "rb") as file:
            content = file.read(_LOOKED_AT)
        # The interpreter of a script is not examined.
        return _obstacle_in(content) if content.startswith(program.ELF) else None
    except (OSError, IndexError, KeyError) as error:
        return speak.reason(error)


def _obstacle_in(content: bytes) -> str | None:
    with open(preload.FILE, "rb") as file:
        ours = file.read(20)
    if content[4:6] != ours[4:6] or content[18:20] != ours[18:20]:
        return "it is built for another architecture than this firsttouch"
    loader = _loader(content)
    if loader is None:
        return "it is linked statically, so its malloc cannot be replaced"
    if b"ld-musl" in loader:
        return "it is linked against musl; the library needs glibc"
    if b"\0libasan.so." in content:
        return "it is built with AddressSanitizer, which must see every block"
    return None


def _loader(content: bytes) -> bytes | None:
    """Return the name of the dynamic loader. Assumes a 64-bit file."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(content[at : at + size], sys.byteorder)

    table, length, count = number(32, 8), number(54, 2), number(56, 2)
    for header in range(table, table + length * count, length or 1):
        if number(header, 4) == _INTERPRETER:
            start = number(header + 8, 8)
            return content[start : start + number(header + 32, 8)]
    return None


def _environment(settings: dict[str, Any], outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the library before anything else that is preloaded, and with its settings."""
    file = preload.FILE
    if set(file) & set(" :"):
        raise BadUsageError(f"run: the dynamic loader cannot preload {file}: its name contains a space or a colon")
    others = [other for other in outer.get("LD_PRELOAD", "").replace(":", " ").split() if other != file]
    return {**outer, "LD_PRELOAD": ":".join([file, *others]), preload.VARIABLE: _told(settings)}


def _told(settings: dict[str, Any]) -> str:
    """Format the settings for the library. The name of a file comes last, because it may contain anything."""
    settings = program.of_rank(settings)
    words = [f"{name}={settings[name]}" for name in ("threshold", "max_idle") if settings.get(name) is not None]
    if "decay" in settings:
        words.append(f"decay={'never' if settings['decay'] is None else settings['decay']}")
    words.append(f"report={os.getpid()}")
    if settings.get("quiet"):
        words.append("quiet=1")
    if settings.get("json"):
        words.append(f"json={settings['json']}")
    return " ".join(words)


def _become(path: str, words: Sequence[str], settings: dict[str, Any]) -> NoReturn:
    """Replace this process by the program."""
    outer = {name: value for name, value in inherited.environment().items() if name != VARIABLE}
    inherited.restore_signals()
    try:
        os.execve(path, list(words), _environment(settings, outer))
    except OSError as error:
        raise BadUsageError(f"run: cannot start {path}: {speak.reason(error)}") from None

"""The program of a command: where its words begin, what it is, and how programs are started."""

from __future__ import annotations

import os
import site
import sys
import time

from _firsttouch_start import VARIABLE, speak
from firsttouch.tools.cli import BadUsageError, files

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

    from firsttouch.tools.cli.output import Parser

#: How programs in machine code begin: Linux's, and all.
ELF = b"\x7fELF"
MACHINE_CODE = (ELF, b"MZ")


class Program:
    """The arguments for python from -m, -c or the script on; or another program's, and its file."""

    def __init__(self, words: tuple[str, ...], executable: str | None = None) -> None:
        self.words = words
        self.executable = executable


def find(word: str) -> str | None:
    """Return the file of a program that is not Python's; None if `word` is a Python script, or nothing."""
    path: str | None = word
    if not (os.path.dirname(word) or os.path.isfile(word) or os.path.exists(os.path.join(word, "__main__.py"))):
        path = _command(word)
    if path is None or path.endswith(".py") or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            start = file.read(256)
    except OSError:
        return None
    if start.startswith(MACHINE_CODE):
        return None if _is_python(path) else path
    first, _, second = start.partition(b"\n")
    of_pip = second.startswith(b"'''exec'")  # a shell's first line, where the path of Python is too long for one
    names = [word.rpartition(b"/")[2] for word in first.split()]  # their folders may be called anything
    of_python = of_pip or any(b"python" in name for name in names)
    return path if first.startswith(b"#!") and not of_python and os.access(path, os.X_OK) else None


def _command(word: str) -> str | None:
    """Return the file of a command, as :func:`shutil.which`, whose imports would cost more than all others here."""
    ending = ".exe" if os.name == "nt" and not word.lower().endswith(".exe") else ""
    paths = (os.path.join(folder, word + ending) for folder in os.get_exec_path())
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _is_python(path: str) -> bool:
    name = os.path.basename(path).lower().removesuffix(".exe")
    return name.startswith("python") and not name[len("python") :].strip("0123456789.")


def split(words: Sequence[str], with_value: Sequence[str]) -> tuple[list[str], Program | None]:
    """Split where the program begins; options in `with_value` take the next word."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("-", "--") or not word.startswith("-") or (word[:2] in ("-m", "-c") and word[2:3] != "-"):
            break
        at += 2 if word in with_value else 1
    own, rest = list(words[:at]), tuple(words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:])
    return own, Program(rest, find(rest[0])) if rest else None


def parse(parser: Parser, words: Sequence[str]) -> tuple[argparse.Namespace, Program]:
    """Parse the options of firsttouch, and split off the program, which is required."""
    with_value = [name for action in parser._actions if action.nargs != 0 for name in action.option_strings]
    own, found = split(words, with_value)
    given = parser.parse(own)
    if found is None:
        parser.error(f"missing program: give a script, -m module or -c code (try firsttouch {parser.command} --help)")
    return given, found


def command() -> list[str]:
    """Return the command that starts this interpreter again, with its options."""
    base = getattr(sys, "_base_executable", sys.executable)
    if os.name == "nt" and base != sys.executable:
        # In a virtual environment python.exe starts another process; this one finds the environment by the variable.
        os.environ["__PYVENV_LAUNCHER__"] = sys.executable
        return [base, *of_python(sys.orig_argv)]
    return [sys.executable, *of_python(sys.orig_argv)]


def of_python(words: Sequence[str]) -> list[str]:
    """Return python's own options from its command line: what comes before the program, or before its -m or -c.

    The letter of these may be joined to options before it and to the name after it, as in `-Im firsttouch` and
    `-mfirsttouch`.
    """
    kept: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in ("-", "--") or not word.startswith("-"):
            break
        at = min((at for letter in "mcWX" if (at := word.find(letter, 1)) > 0), default=0)
        if word == "--check-hash-based-pycs" or (word[at] in "WX" and at == len(word) - 1):
            kept += [word, next(rest, "")]  # its value
        elif word[at] in "mc":
            return kept if at == 1 else [*kept, word[:at]]
        else:
            kept.append(word)
    return kept


def python(found: Program, of: str = "run") -> list[str]:
    """Return the words that start a Python program; reject other programs, and a Python that would ignore firsttouch.

    `of` is the calling command.
    """
    first = found.words[0]
    if found.executable is not None:
        raise BadUsageError(f"{of}: {first} is not a Python program; firsttouch compare measures programs of any kind")
    if _is_python(first):
        another = f"for another Python, {first} -m firsttouch {of} script.py"
        raise BadUsageError(f"{of}: omit {first}, which firsttouch starts itself; {another}")
    if not first.startswith("-") and not os.path.exists(first):
        path = _command(first)
        raise BadUsageError(
            f"{of}: no program {first}" + (f" here; the command of that name is {path}" if path else "")
        )
    if sys.flags.no_site:
        raise BadUsageError(f"{of}: python -S skips the file that starts firsttouch; omit -S")
    if sys.flags.ignore_environment:
        option = "-I" if sys.flags.isolated else "-E"
        raise BadUsageError(f"{of}: python {option} ignores the variable that starts firsttouch; omit {option}")
    # PEP 829 retires import lines in .pth files.
    file = "firsttouch_start.start" if sys.version_info >= (3, 15) else "firsttouch_start.pth"
    if not any(os.path.exists(os.path.join(folder, file)) for folder in _site_folders()):
        raise BadUsageError(
            f"{of}: no {file} in this Python's site-packages, so programs would start without firsttouch; install"
            f" firsttouch there, with {sys.executable} -m pip"
        )
    return [*command(), *found.words]


def _site_folders() -> set[str]:
    """Return the folders in which Python reads such files, those included that another one of them has added."""
    plain = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {*site.getsitepackages(), *(set(sys.path) - set(plain))}


def environment(settings: dict[str, Any]) -> dict[str, str]:
    """Put the settings where the start-up hook of this very process will find them."""
    settings = of_rank(settings) | {"pid": os.getpid(), "start": _counted()}
    return {**os.environ, VARIABLE: _as_json(settings)}


def of_rank(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of this MPI or Slurm rank: the first one speaks for all, and writes the files for all."""
    number = files.rank()
    pattern = settings.get("json")
    if pattern is not None:
        settings = settings | {"json": files.fill_rank(pattern) if not number or files.has_fields(pattern) else ""}
    if number and "trace" in settings:
        settings = settings | {"trace": ""}
    return settings | ({} if number is None else {"rank": number}) | ({"quiet": True} if number else {})


def _counted() -> list[float]:
    """Return what was counted of this process, which the program's counts go on from: the fields of Rust's `Usage`."""
    used, minor, major = os.times(), 0.0, 0.0
    try:
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()  # after the name, which may contain anything
            minor, major = float(fields[7]), float(fields[9])
    except OSError:  # no Linux
        pass
    children = used.children_user + used.children_system
    return [time.monotonic(), used.user, used.system, minor, major, children]


def _as_json(settings: dict[str, Any]) -> str:
    """Format settings by json's own encoder: to import all of json takes longer than all else here."""
    from _json import encode_basestring_ascii, make_encoder

    encode: Any = make_encoder(None, repr, encode_basestring_ascii, None, ": ", ", ", False, False, False)
    return "".join(encode(settings, 0))


def become(file: str, words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by a program."""
    if os.name == "nt":  # there exec starts another process and does not wait for it
        import signal
        import subprocess

        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches the program, too
        try:
            raise SystemExit(subprocess.call([file, *words[1:]], env=environment))
        finally:
            signal.signal(signal.SIGINT, before)
    import _signal  # type: ignore[import-not-found]  # signal takes longer to import than the rest of the command

    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # which Python ignores
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execve(file, list(words), environment)
    except (OSError, ValueError) as error:
        raise BadUsageError(f"cannot start {file}: {speak.reason(error)}") from None


def start(words: Sequence[str], settings: dict[str, Any]) -> NoReturn:
    """Become a Python program, with these settings for the start-up hook."""
    become(words[0], words, environment(settings))


def wait_for(start: Callable[[], NoReturn], wait: Callable[[int], int] | None = None) -> int:
    """Fork, and wait for what the child starts. Returns its status as :func:`os.waitstatus_to_exitcode` does.

    `wait` waits for the child in its own way, and returns the status as :func:`os.waitpid` does.

    Signals that programs may handle, like SIGTERM and SIGUSR1, are passed on to the program, and this process keeps
    waiting. Those of the terminal's keys reach the program anyway. If this process is killed, the program is, too.
    """
    if os.name == "nt":
        try:
            start()
        except SystemExit as ended:
            return int(ended.code or 0)
    import _signal

    from firsttouch import _firsttouch

    parent = os.getpid()
    of_children = _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # ignored, it would hide the status
    child = os.fork()
    if child == 0:
        _signal.signal(_signal.SIGCHLD, of_children)
        _firsttouch.end_with(parent)
        try:
            start()
        except BadUsageError as error:
            speak.line(str(error))
        finally:
            os._exit(2)
    of_keys = (_signal.SIGINT, _signal.SIGQUIT)

    def pass_on(number: int, _: object) -> None:
        if not (number in of_keys and _is_in_foreground()):
            try:
                os.kill(child, number)
            except ProcessLookupError:
                return  # it has ended

    passed = (*of_keys, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGUSR1, _signal.SIGUSR2)
    before = {number: _signal.signal(number, pass_on) for number in passed}
    try:
        return os.waitstatus_to_exitcode(wait(child) if wait else os.waitpid(child, 0)[1])
    finally:
        for number, handler in before.items():
            _signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Return whether the keys of a terminal send signals to this process, and so to the program beside it."""
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def passed_on(status: int) -> int:
    """Return our exit status for a program's; if a signal ended the program, end this process by the same signal."""
    if status < 0:
        import _signal

        if sys.stdout is not None:
            sys.stdout.flush()  # a signal leaves no time for it
        if -status != _signal.SIGKILL:  # which has no handler
            _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        return 128 - status  # as a shell: no signal ends the first process of a container
    return status


def checked(expression: str, of: str) -> str:
    """Return the expression if it makes an allocator that can serve a process; `of` is the calling command."""
    from firsttouch import _firsttouch

    try:
        from firsttouch._internal import resolve

        allocator = resolve.parse(expression)
        _firsttouch.install(allocator)  # only this shows whether it can serve the whole process
        _firsttouch.uninstall()
    except (ValueError, TypeError, MemoryError, _firsttouch.UnsupportedError) as error:
        raise BadUsageError(f"{of}: --allocator: {error}") from None
    except ImportError:
        pass  # NumPy is not installed, and the program may not need it
    return expression

"""The program of a command: where its words begin, what it is, and how Python programs are started."""

from __future__ import annotations

import os
import site
import stat
import sys
import time

from _firsttouch_start import VARIABLE, speak
from firsttouch.tools.cli import BadUsageError, files

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

    from firsttouch.tools.cli.parser import Parser

#: How programs in machine code begin: Linux's, and all.
ELF = b"\x7fELF"
MACHINE_CODE = (ELF, b"MZ")

#: Arrays from this size on are recorded with the line that made them, for `firsttouch why`.
LINES_FROM = 64 << 10

#: Units of a size that may have been separated from its number.
_UNITS = {f"{letter}{rest}" for letter in "KMGT" for rest in ("", "B", "I", "IB")}

#: Letters of python's own options; they belong before `-m firsttouch run`.
_OF_PYTHON = set("bBdEiIOPRsSuvWxX")


class Program:
    """The arguments for python from -m, -c or the script on; or another program's, and its file."""

    def __init__(self, words: tuple[str, ...], executable: str | None = None) -> None:
        self.words = words
        self.executable = executable

    @property
    def through_runpy(self) -> bool:
        """Whether python starts it through runpy: modules, folders and archives."""
        first = self.words[0]
        if first.startswith("-"):
            return first.startswith("-m")
        if os.path.isdir(first):
            return True
        return os.path.isfile(first) and not first.endswith(".py") and _is_archive(first)

    @property
    def can_start(self) -> bool:
        """False if python will certainly reject it; True if it may still do so."""
        first = self.words[0]
        if first.startswith("-"):
            return True
        if os.path.isdir(first):
            return _has_main(first)
        return os.path.exists(first) and os.access(first, os.R_OK)


def find(word: str) -> str | None:
    """Return the file of a program that is not Python's; None if `word` is a Python script, or nothing."""
    here = os.path.dirname(word) or os.path.isfile(word) or _has_main(word)  # any other folder python cannot run
    path = word if here else which(word)
    if path is None or path.endswith(".py") or not os.path.isfile(path):
        return None
    if _start(path).startswith(MACHINE_CODE):
        return None if _is_python(os.path.basename(path)) else path
    return path if interpreter(path) and os.access(path, os.X_OK) else None


def interpreter(path: str) -> str:
    """Return what the first line of a script names to run it, as `/bin/sh`; nothing if that is Python, or no script."""
    first, _, second = _start(path).partition(b"\n")
    of_pip = second.startswith(b"'''exec'")  # a shell's first line, where the path of Python is too long for one
    names = [word.rpartition(b"/")[2] for word in first.split()]  # their folders may be called anything
    of_python = any(b"python" in name for name in names)
    if path.endswith(".py") or not first.startswith(b"#!") or of_python or of_pip:
        return ""
    return os.fsdecode(first[2:].strip())


def _start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(256)
    except OSError:
        return b""


def which(word: str) -> str | None:
    """Return the file of a command, as :func:`shutil.which`, whose imports would cost more than all others here."""
    ending = ".exe" if os.name == "nt" and not word.lower().endswith(".exe") else ""
    for folder in os.get_exec_path():
        path = os.path.join(folder, word + ending)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _has_main(folder: str) -> bool:
    """Return whether python can run a folder."""
    return any(os.path.exists(os.path.join(folder, f"__main__.{end}")) for end in ("py", "pyc"))


def _is_python(name: str) -> bool:
    name = name.lower().removesuffix(".exe")
    return name.startswith("python") and not name[len("python") :].strip("0123456789.")


def split(words: Sequence[str], with_value: Sequence[str], of: str = "run") -> tuple[list[str], Program | None]:
    """Split where the program begins; options in `with_value` take the next word."""
    at = own(words, with_value)
    if at == len(words) > 1 and words[-2] in with_value and os.path.isfile(words[-1]):
        raise BadUsageError(f"{of}: missing program: {words[-1]} was read as the value of {words[-2]}")
    if at < len(words) and words[at] == "--":
        return list(words[:at]), _program(words[at + 1 :], of)
    return list(words[:at]), _program(words[at:], of)


def own(words: Sequence[str], with_value: Sequence[str]) -> int:
    """Return how many words are options of firsttouch; the program, -- or nothing follows."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("-", "--") or not word.startswith("-") or (word[:2] in ("-m", "-c") and word[2:3] != "-"):
            return at
        at += 2 if word in with_value else 1
    return len(words)


def _program(words: Sequence[str], of: str) -> Program | None:
    if list(words) in (["-m"], ["-c"]):
        what = {"-m": "the name of a module", "-c": "the code to run"}[words[0]]
        raise BadUsageError(f"{of}: {words[0]} needs {what}")
    if words and of in ("run", "why") and (other := find(words[0])):
        return Program(tuple(words), other)
    if words:
        if words[0].upper() in _UNITS and not os.path.exists(words[0]):
            raise BadUsageError(f'{of}: no program {words[0]}; quote a size with a space, as in "4 GiB"')
        _refuse_command(words[0], of)
        if of != "advise":  # which reads traces
            files.refuse_trace(of, words[0])
    return Program(tuple(words)) if words else None


def _refuse_command(word: str, of: str) -> None:
    """Catch a program that is not Python's, and the name of a command, which python would not find."""
    if word.startswith("-"):
        return
    ways = {
        "compare": " (firsttouch compare -- takes any command)",
        "advise": f" (firsttouch compare -- {word} measures it)",
    }
    way = ways.get(of, f" (firsttouch run {word} serves it)")
    if os.path.dirname(word) or os.path.exists(word):
        if os.path.isfile(word) and _is_binary(word):
            if _is_python(os.path.basename(word)):
                raise BadUsageError(f"{of}: for another Python, {word} -m firsttouch {of} script.py")
            raise BadUsageError(f"{of}: {word} is not a Python program{way}")
        if os.path.isfile(word) and (its := interpreter(word)):
            if of == "run":
                way = f"firsttouch run {its} {word}"
                raise BadUsageError(f"run: {word} is a script for {its} and not executable: {way}")
            raise BadUsageError(f"{of}: {word} is a script for {its}, not a Python program{way}")
        return
    found = which(word)
    if found is None:
        return
    if _is_python(word):
        raise BadUsageError(f"{of}: omit {word}, which firsttouch starts itself, as in firsttouch {of} script.py")
    if _is_binary(found):
        raise BadUsageError(f"{of}: no file {word} here; the command {found} is not a Python program{way}")
    raise BadUsageError(f"{of}: no file {word} here; the command of that name is {found}: firsttouch {of} {found}")


def _is_binary(path: str) -> bool:
    """Return whether it is machine code; a file that cannot be read may be anything."""
    try:
        with open(path, "rb") as file:
            return file.read(4).startswith(MACHINE_CODE)
    except OSError:
        return False


def hint(word: str, of: str = "run") -> str:
    """Return where an option of python's own belongs, if it is one."""
    if not word.startswith("--") and set(word[1:2]) & _OF_PYTHON:
        return f"{word} is an option of python: put it first, as in python {word} -m firsttouch {of} ..."
    return ""


def _is_archive(path: str) -> bool:
    import zipfile  # as slow as all other imports together, and seldom needed

    # Only regular files are examined: reading a pipe would empty it.
    return stat.S_ISREG(os.stat(path).st_mode) and zipfile.is_zipfile(path)


def parse(parser: Parser, words: Sequence[str], with_value: Sequence[str]) -> tuple[argparse.Namespace, Program]:
    """Parse the options of firsttouch, and split off the program, which is required."""
    command = parser.command
    own, found = split(words, with_value, command)
    for word in own:
        if parser.unknown(word) and (advice := hint(word, command)):
            raise BadUsageError(f"{command}: {advice}")
    given = parser.parse(own)
    if found is None:
        raise BadUsageError(
            f"{command}: missing program: give a script, -m module or -c code (try firsttouch {command} --help)"
        )
    return given, found


def lines(text: str) -> int:
    """Parse the number of lines of a table."""
    import argparse

    if text.isdecimal() and (found := int(text)) >= 1:
        return found
    raise argparse.ArgumentTypeError(f"takes a number of lines, 1 or more, not {text!r}")


def command(of: str = "run") -> list[str]:
    """Return the command that starts this interpreter again, with its options; `of` is the calling command."""
    if not sys.executable:
        raise BadUsageError(f"{of}: Python does not know its own program file (sys.executable is empty)")
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


_LINE = "_firsttouch_start"
_PROBE = f"import sys; sys.exit(not getattr(sys.modules.get({_LINE!r}), '_begun', False))"


def check(interpreter: Sequence[str], of: str = "run") -> None:
    """Reject an interpreter that would start the program without firsttouch; `of` is the calling command."""
    if sys.flags.no_site:
        raise BadUsageError(f"{of}: python -S skips the file that starts firsttouch; omit -S")
    if sys.flags.ignore_environment:
        option = "-I" if sys.flags.isolated else "-E"
        raise BadUsageError(f"{of}: python {option} ignores the variable that starts firsttouch; omit {option}")
    if not any(_stands_in(folder) for folder in _site_folders()) and not _runs(interpreter):
        raise BadUsageError(
            f"{of}: no {_file()} in this Python's site-packages, so programs would start without firsttouch; install"
            f" firsttouch there, with {sys.executable} -m pip"
        )


def _file() -> str:
    """Return the name of the file that starts firsttouch in this Python: PEP 829 retires import lines in .pth files."""
    return "firsttouch_start.start" if sys.version_info >= (3, 15) else "firsttouch_start.pth"


def _site_folders() -> list[str]:
    folders = list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return folders


def _stands_in(folder: str) -> bool:
    ending = os.path.splitext(_file())[1]
    try:
        names = [name for name in os.listdir(folder) if "firsttouch" in name and name.endswith(ending)]
        return any(_LINE in _text(os.path.join(folder, name)) for name in names)
    except (OSError, ValueError):
        return False


def _text(file: str) -> str:
    with open(file, encoding="utf-8") as text:
        return text.read()


def _runs(interpreter: Sequence[str]) -> bool:
    """Ask an interpreter, because a sitecustomize may have added folders that only it knows."""
    import subprocess

    environment = {**os.environ, "FIRSTTOUCH_RUN": "{}"}
    probe = subprocess.run(
        [*interpreter, "-P", "-c", _PROBE],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return probe.returncode == 0


def environment(settings: dict[str, Any], found: Program) -> dict[str, str]:
    """Put the settings where the start-up hook of this very process will find them."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if found.can_start:  # otherwise python reports the error, and there is nothing to add
        settings = of_rank(settings)
        settings |= {"pid": os.getpid(), "runpy": found.through_runpy, "start": _counted()}
        environment[VARIABLE] = _as_json(settings)
    return environment


def of_rank(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of this MPI or Slurm rank: the first one speaks for all, and writes the files for all."""
    number = files.rank()
    ours = {
        name: files.fill_rank(pattern) if not number or files.fields(pattern) else ""
        for name in ("json", "trace")
        if (pattern := settings.get(name)) is not None
    }
    return settings | ours | ({} if number is None else {"rank": number}) | ({"quiet": True} if number else {})


def _counted() -> list[float]:
    """Return what was counted of this process, which the program's counts go on from: the fields of Rust's `Usage`."""
    used, minor, major, waited = os.times(), 0.0, 0.0, 0.0
    try:
        with open("/proc/self/stat", "rb") as stat, open("/proc/self/schedstat", "rb") as schedule:
            fields = stat.read().rpartition(b")")[2].split()  # after the name, which may contain anything
            minor, major, waited = float(fields[7]), float(fields[9]), int(schedule.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # no Linux, or a kernel without these counts
        pass
    children = used.children_user + used.children_system
    return [time.monotonic(), waited, used.user, used.system, minor, major, children]


def _as_json(settings: dict[str, Any]) -> str:
    """Format settings as JSON: to import json takes longer than all else here."""
    from _json import encode_basestring_ascii as quoted

    def text(value: Any) -> str:
        if isinstance(value, str):
            return str(quoted(value))
        return {"None": "null", "True": "true", "False": "false"}.get(repr(value), repr(value))

    return f"{{{', '.join(f'{quoted(name)}: {text(value)}' for name, value in settings.items())}}}"


def become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the program."""
    if os.name == "nt":  # there exec starts another process and does not wait for it
        import signal
        import subprocess

        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches the program, too
        try:
            raise SystemExit(subprocess.call(command, env=environment))
        finally:
            signal.signal(signal.SIGINT, before)
    try:
        os.execve(command[0], command, environment)
    except (OSError, ValueError) as error:
        raise BadUsageError(f"run: cannot start {command[0]}: {error}") from None


def run_and_wait(
    command: list[str], settings: dict[str, Any], found: Program, wait: Callable[[int], int] | None = None
) -> int:
    """Run the program in a child, and wait for it: see :func:`wait_for`."""
    return wait_for(lambda: become([*command, *found.words], environment(settings, found)), wait)


def wait_for(start: Callable[[], NoReturn], wait: Callable[[int], int] | None = None) -> int:
    """Fork, and wait for what the child starts. Returns its status as :func:`os.waitstatus_to_exitcode` does.

    `wait` waits for the child in its own way, and returns the status as :func:`os.waitpid` does.

    Signals that would end this process are passed on to the program, those among them that mean what a program wants,
    and this process keeps waiting. Those of the terminal's keys reach the program anyway. If this process is killed,
    the program is, too.
    """
    if os.name == "nt":
        try:
            start()
        except SystemExit as ended:
            return int(ended.code or 0)
    import _signal  # type: ignore[import-not-found]  # signal takes longer to import

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
        if _firsttouch.BACKEND:
            _firsttouch.install(allocator)  # only this shows whether it can serve the whole process
            _firsttouch.uninstall()
    except (ValueError, TypeError, MemoryError, _firsttouch.UnsupportedError) as error:
        raise BadUsageError(f"{of}: --allocator: {error}") from None
    except ImportError:
        pass  # NumPy is not installed, and the program may not need it
    return expression

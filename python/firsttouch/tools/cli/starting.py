"""Starts Python programs: by which interpreter, with which options, in this process or in a child."""

from __future__ import annotations

import os
import site
import sys

from _firsttouch_start import VARIABLE
from _firsttouch_start import settings as options
from firsttouch.tools.cli import BadUsageError, files, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

#: Options of python's whose value may be the next word.
_WITH_VALUE = "WX"


def command(of: str = "run") -> list[str]:
    """Return the command that starts this interpreter again; `of` is the calling command."""
    if not sys.executable:
        raise BadUsageError(f"{of}: Python does not know its own program file (sys.executable is empty)")
    return [sys.executable, *of_python(sys.orig_argv)]


def of_python(words: Sequence[str]) -> list[str]:
    """Return python's own options from its command line.

    They end before -m, -c or the first word that is not an option. Letters may be joined, as in `-Im firsttouch`.
    """
    kept: list[str] = []
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word.startswith("--"):  # --check-hash-based-pycs is the only one, and takes a value
            kept += [word, *rest[:1]]
            del rest[:1]
            continue
        letters, ends = _before_program(word[1:])
        if letters:
            kept.append(f"-{letters}")
        if ends:
            break
        if letters and letters[-1] in _WITH_VALUE and not _holds_value(letters):
            kept += rest[:1]
            del rest[:1]
    return kept


def _before_program(letters: str) -> tuple[str, bool]:
    """Cut a group of letters at the m or c that introduces the program, if there is one."""
    for at, letter in enumerate(letters):
        if letter in _WITH_VALUE:
            return letters, False
        if letter in "mc":
            return letters[:at], True
    return letters, False


def _holds_value(letters: str) -> bool:
    """Return whether the first W or X of the group has its value in the same word."""
    first = min(letters.index(letter) for letter in _WITH_VALUE if letter in letters)
    return first < len(letters) - 1


_LINE = "_firsttouch_start"
_PROBE = f"import sys; sys.exit(not getattr(sys.modules.get({_LINE!r}), '_begun', False))"

#: The last Python whose site module was seen to obey its file. Newer ones are asked.
_KNOWN = (3, 15)


def check(interpreter: Sequence[str], of: str = "run") -> None:
    """Reject an interpreter that would start the program without firsttouch; `of` is the calling command."""
    if sys.flags.no_site:
        raise BadUsageError(f"{of}: python -S skips the file that starts firsttouch; omit -S")
    if sys.flags.ignore_environment:
        option = "-I" if sys.flags.isolated else "-E"
        raise BadUsageError(f"{of}: python {option} ignores the variable that starts firsttouch; omit {option}")
    certain = sys.version_info[:2] <= _KNOWN and any(_stands_in(folder) for folder in _site_folders())
    if not certain and not _runs(interpreter):
        raise BadUsageError(f"{of}: {_why_not()}")


def _file() -> str:
    """Return the name of the file that starts firsttouch in this Python: PEP 829 retires import lines in .pth files."""
    return "firsttouch_start.start" if sys.version_info >= (3, 15) else "firsttouch_start.pth"


def _why_not() -> str:
    without = "so programs would start without firsttouch"
    if any(_stands_in(folder) for folder in _site_folders()):
        version = ".".join(map(str, sys.version_info[:2]))
        return (
            f"Python {version} ignores {_file()}, {without}; call firsttouch.install() at the start of the program"
            " instead, or use a newer firsttouch"
        )
    install = f"{sys.executable} -m pip install firsttouch"
    return f"no {_file()} in this Python's site-packages, {without}; install it there: {install}"


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


def environment(settings: dict[str, Any], found: program.Program) -> dict[str, str]:
    """Put the settings where the start-up hook of this very process will find them."""
    environment = dict(os.environ)
    outer = environment.pop(VARIABLE, "")
    if found.can_start:  # otherwise python reports the error, and there is nothing to add
        settings = _without_rivals(_inherited(outer), settings) | settings
        settings |= {"pid": os.getpid(), "runpy": found.through_runpy}
        environment[VARIABLE] = options.text(settings)
    return environment


def _inherited(outer: str) -> dict[str, Any]:
    """Return the settings inherited from an outer `firsttouch run`.

    All of them if that became this very process; in a descendant only the name of a report file with one file per
    process.
    """
    try:
        settings = options.parsed(outer or "{}")
    except ValueError:
        return {}
    if not isinstance(settings, dict) or settings.get("pid") == os.getpid():
        return settings if isinstance(settings, dict) else {}
    file = settings.get("json")
    return {"json": file} if file and files.one_per_process(file) else {}


def become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the program."""
    if os.name == "nt":  # there exec starts another process and does not wait for it
        import subprocess

        raise SystemExit(subprocess.call(command, env=environment))
    try:
        os.execve(command[0], command, environment)
    except (OSError, ValueError) as error:
        raise BadUsageError(f"run: cannot start {command[0]}: {error}") from None


def run_and_wait(command: list[str], settings: dict[str, Any], found: program.Program) -> int:
    """Run the program in a child, and wait for it. Returns its status as :func:`os.waitstatus_to_exitcode` does.

    Ctrl-C reaches the program, as it would without this process, which keeps waiting. Other signals that would end this
    process are passed on to the program, those among them that mean what a program wants.
    """
    import signal

    child = os.fork()
    if child == 0:
        try:
            become([*command, *found.words], environment(settings, found))
        finally:
            os._exit(2)
    handlers: dict[int, Any] = {signal.SIGINT: signal.SIG_IGN}
    handlers |= dict.fromkeys(
        (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2), lambda number, _: os.kill(child, number)
    )
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def passed_on(status: int) -> int:
    """Return our exit status for a program's; if a signal ended the program, end this process by the same signal."""
    if status < 0:
        import signal
        import sys

        if sys.stdout is not None:
            sys.stdout.flush()  # a signal leaves no time for it
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status


#: Options of the default pool, which an expression contains itself.
_OF_POOL = ("max_idle", "decay")


def checked(given: Any, of: str = "run") -> str:
    """Return the expression if it makes an allocator that can serve a process; `of` is the calling command."""
    for name in _OF_POOL:
        if getattr(given, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise BadUsageError(f"run: {option} is for the default pool; with --allocator write it as {_written(name)}")
    from firsttouch import _firsttouch

    text: str = given.allocator
    try:
        from firsttouch._internal import resolve

        allocator = resolve.parse(text)
        if _firsttouch.BACKEND:
            _firsttouch.install(allocator)  # in this process, which is about to end
    except (ValueError, TypeError, MemoryError, _firsttouch.UnsupportedError) as error:
        raise BadUsageError(f"{of}: --allocator: {error}") from None
    except ImportError:
        pass  # NumPy is not installed, and the program may not need it
    return text


def _written(name: str) -> str:
    return "pool(max_idle=...)" if name == "max_idle" else "pool(decay=...)"


def _without_rivals(inherited: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an outer run, without those that the inner run's options replace."""
    rivals: set[str] = set()
    if "allocator" in settings:
        rivals.update(_OF_POOL)
    elif any(name in settings for name in _OF_POOL):
        rivals.add("allocator")
    return {name: value for name, value in inherited.items() if name not in rivals}


_TRIAL = "import sys, firsttouch; firsttouch.install(sys.argv[1])"


def tried_elsewhere(command: str, expression: str) -> str:
    """As `checked`, in another process, for a command that continues afterwards."""
    import subprocess

    from firsttouch.tools.measuring.starter import helper

    probe = subprocess.run(
        helper("-c", _TRIAL, expression),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0:
        said = (probe.stderr.strip().splitlines() or [f"the trial process exited with status {probe.returncode}"])[-1]
        raise BadUsageError(f"{command}: --allocator: {said.partition(': ')[2] or said}")
    return expression

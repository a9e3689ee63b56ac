"""The interpreter to start: this one, with the options it was given and with the file that starts firsttouch."""

from __future__ import annotations

import os
import site
import sys
from typing import TYPE_CHECKING

from firsttouch.tools.cli.parser import BadUsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Options of python's whose value may be the next word.
_WITH_VALUE = "WX"


def command(of: str = "run") -> list[str]:
    """Return the command that starts this interpreter again; `of` is the calling command."""
    if not sys.executable:
        raise BadUsageError(f"{of}: Python does not know its own program file (sys.executable is empty)")
    return [sys.executable, *options(sys.orig_argv)]


def options(words: Sequence[str]) -> list[str]:
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

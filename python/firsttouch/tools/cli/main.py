"""`firsttouch COMMAND ...`: finds the command and runs it."""

from __future__ import annotations

import importlib
import os
import sys
from io import TextIOWrapper

from _firsttouch_start import speak
from firsttouch.tools.cli import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "run": "run a NumPy program on pooled memory, and report on it",
    "why": "say what a program's or a process's memory is, by line",
    "trace": "record a program's array allocations, for advise",
    "advise": "estimate what pooled memory would save a program, and where",
    "compare": "run a program under several allocators, and say which is fastest",
    "bench": "run classic experiments on zeroing, first touch and zero pages",
}
#: What stands in the place of a command, and is about this machine or installation.
ABOUT = {
    "--info": "show how this machine manages memory",
    "--completion": "print the script that completes commands in bash and zsh",
}

_HELP = """\
usage: firsttouch COMMAND ...

Decide where the memory of NumPy's arrays comes from.

commands:
{commands}

instead of a command:
{about}
  --version     show the version

firsttouch COMMAND --help shows help for a command.

for example:
  firsttouch run script.py
  firsttouch compare script.py
  python -m firsttouch run script.py    the same, with a Python of your choice
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":  # a terminal may support only ASCII
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _dispatch(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BadUsageError as error:
        speak.line(str(error))
        return 2
    except BrokenPipeError:  # the reader of the output has seen enough
        _silence()
        return 1
    except OSError as error:
        speak.line(f"{error.filename or words[0]}: {speak.reason(error)}")
        _silence()
        return 1
    except KeyboardInterrupt as interrupt:
        speak.line(f"{words[0]}: {str(interrupt) or 'interrupted'}")
        return 130


def _silence() -> None:
    """Discard buffered output; python would try to write it again at exit, and complain."""
    if sys.stdout is None:  # closed
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    command = words[0] if words else ""
    if command == "help" and words[1:2]:
        command, words = words[1], [words[1], "--help"]
    if command in COMMANDS or command in ABOUT:
        module = importlib.import_module(f"firsttouch.tools.cli.{command.removeprefix('--')}")
        status: int = module.main(words[1:])
        return status
    if command in ("-h", "--help", "help"):
        print(_help(), end="")
        return 0
    if command in ("-V", "--version"):
        from firsttouch._firsttouch import __version__

        print(f"firsttouch {__version__}")
        return 0
    if not command:
        raise BadUsageError(f"missing command: one of {', '.join(COMMANDS)} (try firsttouch --help)")
    if command.endswith(".py") or os.path.exists(command):
        raise BadUsageError(f"{command!r} is not a command; to run it, use: firsttouch run {command}")
    from firsttouch._firsttouch import did_you_mean

    known = [*COMMANDS, *ABOUT]
    raise BadUsageError(f"unknown command {command!r}{did_you_mean(command, known)} (try firsttouch --help)")


def _help() -> str:
    def rows(words: dict[str, str]) -> str:
        return "\n".join(f"  {name:12}  {text}" for name, text in words.items())

    return _HELP.format(commands=rows(COMMANDS), about=rows(ABOUT))

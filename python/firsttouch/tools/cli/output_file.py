"""Files that a command reads or writes: looked at before the program runs, not after hours."""

import os

from _firsttouch_start import rank
from firsttouch.tools.cli import report_file
from firsttouch.tools.cli.usage import BadUsageError

#: How every trace begins (crates/firsttouch/src/trace/format.rs).
MAGIC = b"\x89FTRC\r\n\x1a"


def checked(command: str, name: str) -> str:
    """The full name of a file that can be written, whatever directory the program goes to."""
    path = report_file.absolute(name, command, "-o")
    if path == "-":
        path = os.path.abspath(name)
    report_file.refuse(command, name, rank.fill(path))
    return path


def check_json(command: str, name: str | None) -> None:
    """The same for --json, whose - is standard output."""
    if name is not None and (path := report_file.absolute(name, command)) != "-":
        report_file.refuse(command, name, path)


def is_trace(name: str) -> bool:
    """Whether this is a trace to be read, and no program: by its name, or by how it begins."""
    return name.endswith(".ft") or _begins_as_one(name)


def refuse_trace(command: str, name: str) -> None:
    """Refuse a trace where a program is expected: python would call it a script in a wrong encoding."""
    if _begins_as_one(name):
        raise BadUsageError(
            f"{command}: {name} is a trace and no program: firsttouch trace --summary {name} sums it up,"
            f" firsttouch replay {name} plays it"
        )


def _begins_as_one(name: str) -> bool:
    if not os.path.isfile(name):  # reading a pipe would empty it
        return False
    try:
        with open(name, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def check_trace(command: str, name: str) -> None:
    """Refuse what can't be read as a file at all."""
    if os.path.isdir(name):
        raise BadUsageError(f"{command}: {name} is a directory, not a trace")
    if not name:
        raise BadUsageError(f"{command}: the name of a trace is missing")
    if not os.path.exists(name):
        raise BadUsageError(f"{command}: no such file: {name}; firsttouch trace -o {name} script.py writes one")
    if not os.path.isfile(name):
        raise BadUsageError(f"{command}: {name} is no regular file: a trace is read more than once")
    if not os.access(name, os.R_OK):
        raise BadUsageError(f"{command}: cannot read {name}: permission denied")

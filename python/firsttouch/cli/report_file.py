"""Files of reports: named in full before the program may change directory, checked early."""

import os

from _firsttouch_start import rank, speak
from firsttouch.cli.usage import BadUsageError


def absolute(name: str, command: str = "run", option: str = "--json") -> str:
    """Name the file independently of the working directory; - stays standard output."""
    if name.endswith(".py"):  # a forgotten file name must not cost the user a program
        raise BadUsageError(f"{command}: {option} takes the name of a report, and {name} is a program")
    return name if name == "-" else os.path.abspath(name)


def one_per_process(name: str) -> bool:
    """Whether each process gets a file of its own."""
    return "p" in rank.fields(name)


def warn_early(name: str | None) -> None:
    """Say before the program runs, not after hours, that its report has nowhere to go."""
    if not name or name == "-":
        return
    why = obstacle(rank.fill(name))
    if why:
        speak.line(f"the report of --json cannot be written: {why}")


def obstacle(path: str) -> str | None:
    """Why nothing could be written to this file, given by its full name; None if nothing speaks against it."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"there is no directory {folder}"
    if os.path.isdir(path):
        return f"{path} is a directory"
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        return f"no permission to write {path}"
    return None

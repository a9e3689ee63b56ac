"""Files of reports: named in full before the program may change directory, checked early."""

import os

from _firsttouch_start import rank, speak
from firsttouch.tools.cli.usage import BadUsageError


def absolute(name: str, command: str = "run", option: str = "--json") -> str:
    """Name the file independently of the working directory; - stays standard output."""
    if not name:
        raise BadUsageError(f"{command}: {option} needs the name of a file, not ''")
    if name.endswith(".py"):  # a forgotten file name must not cost the user a program
        raise BadUsageError(f"{command}: {option} takes the name of a file to write, and {name} is a program")
    return name if name == "-" else os.path.abspath(name)


def one_per_process(name: str) -> bool:
    """Whether each process gets a file of its own."""
    return "p" in rank.fields(name)


def obstacle(path: str) -> str | None:
    """Why nothing could be written to this file, given by its full name; None if nothing speaks against it."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"no such directory: {folder}"
    if os.path.isdir(path):
        return "it is a directory"
    there = path if os.path.exists(path) else folder
    if not os.access(there, os.W_OK):
        read_only = hasattr(os, "statvfs") and os.statvfs(there).f_flag & os.ST_RDONLY
        return "read-only file system" if read_only else "permission denied"
    return None if there == path else _refused(folder)


def _refused(folder: str) -> str | None:
    """What the system says to a new file there: permissions do not tell of file systems like /proc."""
    import tempfile

    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return speak.reason(error)
    return None


def refuse(command: str, name: str, path: str) -> None:
    """Refuse a file that could not be written, before anything runs."""
    why = obstacle(path)
    if why:
        raise BadUsageError(f"{command}: cannot write {name}: {why}")

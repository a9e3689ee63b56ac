"""Files that a command reads or writes, checked before the program runs."""

import os

from _firsttouch_start import rank, speak
from firsttouch.tools.cli.parser import BadUsageError


def absolute(name: str, command: str = "run", option: str = "--json") -> str:
    """Name the file independently of the working directory; - stays standard output."""
    if not name:
        raise BadUsageError(f"{command}: {option} needs a file name, not ''")
    if name.endswith(".py"):  # a forgotten file name must not cost the user a program
        raise BadUsageError(f"{command}: {option} takes a file to write, but {name} is a program")
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


#: How every trace begins (crates/firsttouch/src/trace/format.rs).
MAGIC = b"\x89FTRC\r\n\x1a"


def checked(command: str, name: str) -> str:
    """The full name of a file that can be written, whatever directory the program goes to."""
    path = absolute(name, command, "-o")
    if path == "-":
        path = os.path.abspath(name)
    refuse(command, name, rank.fill(path))
    return path


def check_json(command: str, name: str | None) -> None:
    """The same for --json, whose - is standard output."""
    if name is not None and (path := absolute(name, command)) != "-":
        refuse(command, name, path)


def is_trace(name: str) -> bool:
    """Whether this is a trace to be read, and no program: by its name, or by how it begins."""
    return name.endswith(".ft") or _begins_as_one(name)


def refuse_trace(command: str, name: str) -> None:
    """Refuse a trace where a program is expected: python would call it a script in a wrong encoding."""
    if _begins_as_one(name):
        raise BadUsageError(
            f"{command}: {name} is a trace, not a program: firsttouch trace --summary {name} sums it up,"
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
        raise BadUsageError(f"{command}: {name} is not a regular file: a trace is read more than once")
    if not os.access(name, os.R_OK):
        raise BadUsageError(f"{command}: cannot read {name}: permission denied")

"""Files that a command reads or writes, checked before the program runs."""

import os

from _firsttouch_start import settings, speak
from firsttouch.tools.cli import BadUsageError

_VARIABLES = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
)


def rank() -> int | None:
    """Return the MPI or Slurm rank of this process, or None if there is none."""
    for name in _VARIABLES:
        text = os.environ.get(name, "")
        if text.isdecimal():
            return int(text)
    return None


def fields(pattern: str) -> set[str]:
    """Return which of the fields %r and %p a file name contains, as a set of letters."""
    return {piece[1] for piece in _pieces(pattern) if piece in ("%r", "%p")}


def fill(pattern: str) -> str:
    """Substitute the rank for %r, the process number for %p and a percent sign for %%."""
    return settings.filled(fill_rank(pattern))


def fill_rank(pattern: str) -> str:
    """Substitute the rank alone; the process that gets the result substitutes the rest."""
    return "".join(str(rank() or 0) if piece == "%r" else piece for piece in _pieces(pattern))


def escape(name: str) -> str:
    """Return the pattern of this very name: without fields."""
    return name.replace("%", "%%")


def _pieces(pattern: str) -> list[str]:
    """Split a file name so that each percent sign and the following letter form one piece."""
    pieces: list[str] = []
    while pattern:
        length = 2 if pattern[0] == "%" else 1
        pieces.append(pattern[:length])
        pattern = pattern[length:]
    return pieces


def absolute(name: str, command: str = "run", option: str = "--json") -> str:
    """Return the absolute name of the file; - stays standard output."""
    if not name:
        raise BadUsageError(f"{command}: {option} needs a file name, not ''")
    if name.endswith(".py"):  # with a forgotten file name, the program would be overwritten
        raise BadUsageError(f"{command}: {option} takes a file to write, but {name} is a program")
    return name if name == "-" else os.path.normpath(os.path.join(_folder(name, command), name))


def _folder(name: str, command: str) -> str:
    """Return the directory of a relative name: the current one, which may have been removed."""
    if os.path.isabs(name):
        return ""
    try:
        return os.getcwd()
    except OSError as error:
        raise BadUsageError(f"{command}: the current directory: {speak.reason(error)}") from None


def pattern(name: str, command: str = "run", option: str = "--json") -> str:
    """Return the same of a name with fields; what the current directory is called has none."""
    path = absolute(name, command, option)
    return path if path == "-" else os.path.normpath(os.path.join(escape(_folder(name, command)), name))


def obstacle(path: str) -> str | None:
    """Return why this file, given by its absolute name, cannot be written; None if it probably can."""
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
    """Return the system's error for a new file there: permissions do not cover file systems like /proc."""
    import tempfile

    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return speak.reason(error)
    return None


def version(file: str) -> tuple[int, int] | None:
    """Tell an older file, which stays where the program writes none, from the program's own."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def refuse(command: str, name: str, path: str) -> None:
    """Reject a file that could not be written, before anything runs."""
    why = obstacle(path)
    if why:
        raise BadUsageError(f"{command}: cannot write {name}: {why}")


#: The first bytes of a trace (crates/firsttouch-trace/src/format.rs).
MAGIC = b"\x89FTRC\r\n\x1a"


def checked(command: str, name: str) -> str:
    """Return the absolute name, fields included, of a writable file; a change of directory does not matter to it."""
    path = pattern(f"./{name}" if name == "-" else name, command, "-o")
    refuse(command, name, fill(path))
    return path


def is_trace(name: str) -> bool:
    """Return whether this is a trace and not a program: by its name, or by its first bytes."""
    return name.endswith(".ft") or _begins_as_one(name)


def refuse_trace(command: str, name: str) -> None:
    """Reject a trace where a program is expected; python would report a wrong encoding."""
    if _begins_as_one(name):
        raise BadUsageError(f"{command}: {name} is a trace, not a program: firsttouch advise {name} reads it")


def _begins_as_one(name: str) -> bool:
    if not os.path.isfile(name):  # reading a pipe would empty it
        return False
    try:
        with open(name, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def check_trace(command: str, name: str) -> None:
    """Reject what cannot be read as a file."""
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

"""Files that a command reads or writes, checked before the program runs."""

import os

from _firsttouch_start import speak
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


def has_fields(pattern: str) -> bool:
    """Return whether a file name contains %r or %p, so that several processes have files of their own."""
    return "%r" in pattern or "%p" in pattern


def fill_rank(pattern: str) -> str:
    """Substitute the rank for %r; the process that gets the result substitutes its number for %p."""
    return pattern.replace("%r", str(rank() or 0))


def checked(command: str, option: str, name: str, fields: bool = False) -> str:
    """Return the absolute name of a file to write; - of --json stays as it is. Reject one that cannot be written.

    With `fields`, %r in the name stands for the rank and %p for the process, and the result may contain them, too.
    """
    if not name or (name == "-" and option != "--json"):
        raise BadUsageError(f"{command}: {option} needs a file name, not {name!r}")
    if name.endswith(".py"):  # with a forgotten file name, the program would be overwritten
        raise BadUsageError(f"{command}: {option} takes a file to write, but {name} is a program")
    if name == "-":
        return name
    path = fill_rank(name).replace("%p", str(os.getpid())) if fields else name
    try:
        is_new = not os.path.exists(path)
        with open(path, "ab"):
            pass
        if is_new:
            os.remove(path)
        folder = os.getcwd()
    except OSError as error:
        raise BadUsageError(f"{command}: cannot write {name}: {speak.reason(error)}") from None
    return os.path.join(folder, name)


def is_trace(name: str) -> bool:
    """Return whether this is to be a trace and not a program: by its name, or as it begins like JSON."""
    if name.endswith(".ft") or not os.path.isfile(name):  # reading a pipe would empty it
        return name.endswith(".ft")
    with open(name, "rb") as file:
        return file.read(1) == b"{"

"""The options of `firsttouch run`, as its processes find them in the environment."""

import os

from _firsttouch_start import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load() -> "dict[str, Any]":
    """Parse the options anew each time: a fork or the program itself may have changed the variable.

    Keys: pid, start and, if given, rank, quiet, json, allocator, limit, accounts, lines, watched, trace and advise.
    """
    text = os.environ.get(VARIABLE, "{}")
    try:
        found = parsed(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{VARIABLE} is {text!r}, which `firsttouch run` did not write")
    return found


def command_process() -> int:
    """Return the number of the process of `firsttouch run`, if this is the program: that became the program.

    On Windows no process becomes another one, so the program is its child.
    """
    return os.getppid() if os.name == "nt" else os.getpid()


class _AsTheyAre:
    """Tells json's scanner to build only Python's own types."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def parsed(text: str) -> object:
    """Parse JSON with json's own scanner: all of json would cost milliseconds, and might be a module of the program's.

    Raises ValueError if it is not valid JSON.
    """
    from _json import make_scanner

    try:
        return make_scanner(_AsTheyAre)(text, 0)[0]  # type: ignore[arg-type]
    except StopIteration:
        raise ValueError(f"{text!r} is not valid JSON") from None

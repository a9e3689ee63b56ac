"""The options of `firsttouch run`, as they come through the environment."""

import os

from _firsttouch_start import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load() -> "dict[str, Any]":
    """Read the options anew: a fork or the program itself may have changed the variable.

    Keys: pid, json, quiet, runpy, and, where they were given, allocator, max_idle, decay and trace.
    """
    text = os.environ.get(VARIABLE, "{}")
    try:
        found = _parse(text)
    except (ValueError, StopIteration):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{VARIABLE} is {text!r}, which `firsttouch run` did not write")
    return found


class _AsTheyAre:
    """What json's scanner is to make of values: nothing but Python's own."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _parse(text: str) -> object:
    """Read JSON with json's own scanner: importing all of json would cost milliseconds here."""
    try:
        from _json import make_scanner
    except ImportError:
        from _firsttouch_start import library

        return library.borrow("json").loads(text)
    return make_scanner(_AsTheyAre)(text, 0)[0]  # type: ignore[arg-type]

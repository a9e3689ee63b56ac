"""The options of `firsttouch run`, as passed through the environment."""

import os

from _firsttouch_start import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load() -> "dict[str, Any]":
    """Parse the options anew each time: a fork or the program itself may have changed the variable.

    Keys: pid, json, quiet, runpy and, if given, allocator, limit, max_idle, decay, trace and advise.
    """
    text = os.environ.get(VARIABLE, "{}")
    try:
        found = parsed(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{VARIABLE} is {text!r}, which `firsttouch run` did not write")
    return found


class _AsTheyAre:
    """Tells json's scanner to build only Python's own types."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def parsed(text: str) -> object:
    """Parse JSON with json's own scanner, because importing all of json would cost milliseconds here.

    Raises ValueError if it is not valid JSON.
    """
    try:
        from _json import make_scanner
    except ImportError:
        from _firsttouch_start import library

        return library.borrow("json").loads(text)
    try:
        return make_scanner(_AsTheyAre)(text, 0)[0]  # type: ignore[arg-type]
    except StopIteration:
        raise ValueError(f"{text!r} is not valid JSON") from None


def text(options: "dict[str, Any]") -> str:
    """Format the options, strings and numbers, as JSON; without json for the same reason."""
    try:
        from _json import encode_basestring_ascii as quoted
    except ImportError:
        from _firsttouch_start import library

        return str(library.borrow("json").dumps(options))
    words = {name: quoted(value) if isinstance(value, str) else _plain(value) for name, value in options.items()}
    return f"{{{', '.join(f'{quoted(name)}: {word}' for name, word in words.items())}}}"


def _plain(value: "float | bool | None") -> str:
    return {"None": "null", "True": "true", "False": "false"}.get(repr(value), repr(value))

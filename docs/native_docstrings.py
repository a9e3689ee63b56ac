"""Gives Sphinx the docstrings of native objects, which are written in the stub of the native module."""

from typing import Any

from tests.docs.public import STUB_DOCS, is_native


def add(_app: Any, _what: str, name: str, thing: object, _options: Any, lines: list[str]) -> None:
    """Replace what Sphinx found at run time; it calls this before numpydoc's own function."""
    if not is_native(thing):
        return
    parts = name.split(".")
    found = STUB_DOCS.get(".".join(parts[-2:])) or STUB_DOCS.get(parts[-1])
    if found:
        lines[:] = found.splitlines()

"""Gives Sphinx the docstrings of native objects, which are written in the stub of the native module."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import GetSetDescriptorType
from typing import Any

from firsttouch import _firsttouch


def _docstrings(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield prefix + node.name, ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            yield from _docstrings(node.body, f"{node.name}.")


_STUB = Path(_firsttouch.__file__).with_name("_firsttouch.pyi")
_DOCSTRINGS = dict(_docstrings(ast.parse(_STUB.read_text("utf-8")).body))


def _is_native(thing: object) -> bool:
    if isinstance(thing, type):
        return vars(_firsttouch).get(thing.__name__) is thing
    return inspect.isbuiltin(thing) or inspect.ismethoddescriptor(thing) or isinstance(thing, GetSetDescriptorType)


def add(_app: Any, _what: str, name: str, thing: object, _options: Any, lines: list[str]) -> None:
    """Replace what Sphinx found at run time; it calls this before numpydoc's own function."""
    if not _is_native(thing):
        return
    parts = name.split(".")
    found = _DOCSTRINGS.get(".".join(parts[-2:])) or _DOCSTRINGS.get(parts[-1])
    if found:
        lines[:] = found.splitlines()

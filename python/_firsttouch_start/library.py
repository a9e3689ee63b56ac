"""Modules of the standard library, even where the program has one of the same name.

A program's folder stands first on its path, and a json.py there is no business of ours: it must
neither be run by us nor be kept out by us.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def borrow(name: str) -> "Any":
    """Import a module from Python's own folders and leave no entry for it that was not there.

    Raises ImportError where Python has none of this name.
    """
    loaded = sys.modules.get(name)
    if loaded is not None and _is_own(loaded):
        return loaded
    path, of_program = sys.path, _take_out(name)
    sys.path = [folder for folder in path if folder in _folders()]
    try:
        return __import__(name)
    finally:
        sys.path = path
        _take_out(name)
        sys.modules.update(of_program)


def _take_out(name: str) -> "dict[str, Any]":
    """Remove a module and those below it from what is loaded."""
    return {module: sys.modules.pop(module) for module in list(sys.modules) if module.partition(".")[0] == name}


def _is_own(module: "Any") -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True  # built in
    folder = os.path.dirname(file)
    return folder in _folders() or os.path.dirname(folder) in _folders()


def _folders() -> list[str]:
    file = getattr(os, "__file__", None)
    if file is None:  # a library in an archive or in the program itself
        return sys.path
    library = os.path.dirname(file)
    return [library, os.path.join(library, "lib-dynload")]

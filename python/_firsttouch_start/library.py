"""Imports modules of the standard library even if the program has modules of the same names.

A program's folder comes first on its path, and a json.py there is the program's own: this package must neither run it
nor keep the program from importing it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def borrow(name: str) -> "Any":
    """Import a module from Python's own folders, and leave no entry in sys.modules that was not there.

    Raises ImportError if Python has no module of this name.
    """
    loaded = sys.modules.get(name)
    if loaded is not None and _is_own(loaded):
        return loaded
    path, of_program = sys.path, _take_out(name)
    sys.path = _folders()  # which the program may have taken off its path
    try:
        return __import__(name)
    finally:
        sys.path = path
        _take_out(name)
        sys.modules.update(of_program)


def _take_out(name: str) -> "dict[str, Any]":
    """Remove a module and its submodules from sys.modules."""
    return {module: sys.modules.pop(module) for module in list(sys.modules) if module.partition(".")[0] == name}


def _is_own(module: "Any") -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True  # built in
    folder = os.path.dirname(file)
    return folder in _folders() or os.path.dirname(folder) in _folders()


def _folders() -> list[str]:
    file = getattr(os, "__file__", None)
    if file is None:  # the standard library is in an archive or in the executable
        return sys.path
    library = os.path.dirname(file)
    return [library, os.path.join(library, "lib-dynload")]

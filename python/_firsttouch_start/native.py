"""Loads the native module without the package around it.

A program that never imports firsttouch needs no more for its arrays, and saves importing some sixty modules. If it does
import the package later, that finds the native module loaded.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "firsttouch._firsttouch"


def load() -> "Any":
    """Return the native module next to this package, whatever else is named firsttouch on the program's path.

    Raises ImportError if it cannot be loaded.
    """
    import importlib
    from importlib.machinery import PathFinder

    if NAME in sys.modules:
        return importlib.import_module(NAME)  # waits for a thread that is loading it
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "firsttouch")
    spec = PathFinder.find_spec(NAME, [folder])
    if spec is None:
        raise ImportError(f"{folder} has no native module for this Python", name=NAME)
    # import_module calls this after importing the package and finding the module; it acquires the module's lock.
    return importlib._bootstrap._load(spec)  # type: ignore[attr-defined]

"""Hear when the first import of a module is complete, and leave no trace of having listened.

A finder that finds nothing itself asks the others, and lends the loader they name an
`exec_module` that reports back. The loader drops it again before the module runs, so module,
spec and loader are what they would have been.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import FunctionType, ModuleType
    from typing import Any

    Heard = Callable[[str], None]

_IMPORTLIB = "<frozen importlib._bootstrap>"


def _hide(function: "Callable[..., Any]") -> None:
    """Name importlib as the function's file: Python then leaves its frame out of tracebacks."""
    code: FunctionType = function  # type: ignore[assignment]
    code.__code__ = code.__code__.replace(co_filename=_IMPORTLIB)


class Listener:
    """A finder on `sys.meta_path` for as long as it has something to listen for."""

    def __init__(self) -> None:
        self.names: dict[str, Heard] = {}

    def add(self, name: str, heard: "Heard") -> None:
        """Call `heard(name)` once, right after the module's code has run."""
        self.names[name] = heard
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self, name: str) -> None:
        """Stop listening for a module, and step aside with the last one."""
        self.names.pop(name, None)
        if not self.names and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Answer as the other finders do, with a loader that reports back."""
        if name not in self.names:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                self._lend(spec.loader, name)
                return spec
        return None

    def _lend(self, loader: "Any", name: str) -> None:
        run = getattr(loader, "exec_module", None)
        if run is None:
            return

        def exec_module(module: "ModuleType") -> None:
            # A loader may serve several modules, and a spec may be found without being loaded.
            if module.__name__ != name:
                run(module)
                return
            vars(loader).pop("exec_module", None)
            run(module)
            heard = self.names.get(name)
            if heard is not None:
                heard(name)

        _hide(exec_module)
        try:
            loader.exec_module = exec_module
        except (AttributeError, TypeError):
            return  # no room for an attribute: the module loads unheard, and the report says so


_hide(Listener.find_spec)

listener = Listener()

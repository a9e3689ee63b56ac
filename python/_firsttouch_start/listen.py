"""Calls back when the first import of a module is complete, without leaving a trace.

A finder that finds nothing itself asks the other finders, and gives the loader that they return an `exec_module` that
reports back. The loader loses it before the module runs, so the module, its spec and its loader are what they would
have been.
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
    """Set the function's file name to importlib's, so that Python leaves its frame out of tracebacks."""
    code: FunctionType = function  # type: ignore[assignment]
    code.__code__ = code.__code__.replace(co_filename=_IMPORTLIB)


class Listener:
    """A finder on `sys.meta_path`, as long as there are modules to wait for."""

    def __init__(self) -> None:
        self.names: dict[str, Heard] = {}

    def add(self, name: str, heard: "Heard") -> None:
        """Call `heard(name)` once, right after the code of the module has run."""
        self.names[name] = heard
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self, name: str) -> None:
        """Stop waiting for a module; remove the finder with the last one."""
        self.names.pop(name, None)
        if not self.names and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return the spec that the other finders return, with a loader that reports back."""
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
            return  # the loader accepts no attribute: the module loads unnoticed, and the report says so


_hide(Listener.find_spec)

listener = Listener()

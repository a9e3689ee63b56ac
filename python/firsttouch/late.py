"""What is loaded when it is first asked for: `firsttouch run` starts without NumPy, and imports take time."""

import importlib
from typing import Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator

NAMES = (
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "fromiter",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
)

#: Functions and classes that most programs never ask for, and the module of each. (None that a report at the end needs:
#: making a dataclass then would have Python forget that Ctrl-C ended the program.)
MODULES = {
    name: f"firsttouch.{module}"
    for module, names in {
        "placement.arrays": "collapse migrate receipt receipts touch",
        "placement.nodes": "run_on topology",
        "sharing": "SharedArrayError share shared",
        "sight": "Inspection NotBackedWarning PageSource PageState check_backed inspect is_backed pagemap plot_pagemap",
    }.items()
    for name in names.split()
}


def loaded(name: str) -> Any:
    """One of them."""
    return getattr(importlib.import_module(MODULES[name]), name)


def constructor(name: str) -> Any:
    """The function of this name; NumPy is there afterwards, and the methods are."""
    creation = importlib.import_module("firsttouch.creation")
    for method in NAMES:
        if isinstance(vars(Allocator).get(method), _Method):
            setattr(Allocator, method, creation.METHODS[method])
    return getattr(creation, name)


def _empty(*arguments: Any, **named: Any) -> Any:
    return constructor("empty")(*arguments, **named)


def _zeros(*arguments: Any, **named: Any) -> Any:
    return constructor("zeros")(*arguments, **named)


class _Method:
    """Stands for an allocator's method until it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, allocator: Allocator | None, kind: type[Allocator]) -> Any:
        constructor(self._name)
        return getattr(kind if allocator is None else allocator, self._name)


def attach() -> None:
    """Gives allocators the constructors as methods, and those that are native what they leave to NumPy."""
    _firsttouch.set_long(_empty, _zeros)
    for name in NAMES:
        if not hasattr(Allocator, name):
            setattr(Allocator, name, _Method(name))

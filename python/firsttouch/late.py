"""What is loaded when it is first asked for: `firsttouch run` starts without NumPy, and imports take time.

That is most of it. What is native is there at once, and what a program needs that has run out of memory.
"""

import sys

from firsttouch import _firsttouch, forks
from firsttouch._firsttouch import Allocator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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

#: The modules that make allocators, which expressions know by their names.
FACTORIES = ("adaptors", "allocators", "scratch.default")

#: Functions and classes, by the module of each.
MODULES = {
    name: module
    for module, names in {
        "adaptors": "filled guarded limited pool tracked",
        "allocators": "aligned calloc from_functions jemalloc malloc mimalloc numa numpy_default pages",
        "gauge": "Measured measure",
        "own": "AllocatorLike OwnAllocator",
        "placement.arrays": "collapse migrate receipt receipts touch",
        "placement.nodes": "run_on topology",
        "placement.policies": "Policy",
        "scopes": "use",
        "scratch.default": "default_buffer using_buffer",
        "scratch.errors": "EscapeError EscapeWarning",
        "sharing": "SharedArrayError share shared",
        "sight": "Inspection NotBackedWarning PageSource PageState check_backed inspect is_backed pagemap plot_pagemap",
    }.items()
    for name in names.split()
}


def _module(name: str) -> "Any":
    with forks.loading:
        __import__(f"firsttouch.{name}")
    return sys.modules[f"firsttouch.{name}"]


def loaded(name: str) -> "Any":
    """One of them."""
    return getattr(_module(MODULES[name]), name)


def load_factories() -> None:
    """Has every factory be known."""
    for module in FACTORIES:
        _module(module)


def constructor(name: str) -> "Any":
    """The function of this name; NumPy is there afterwards, and the methods are."""
    creation = _module("creation")
    for method in NAMES:
        if isinstance(vars(Allocator).get(method), _Method):
            setattr(Allocator, method, creation.METHODS[method])
    return getattr(creation, name)


def _empty(*arguments: "Any", **named: "Any") -> "Any":
    return constructor("empty")(*arguments, **named)


def _zeros(*arguments: "Any", **named: "Any") -> "Any":
    return constructor("zeros")(*arguments, **named)


class _Method:
    """Stands for an allocator's method until it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, allocator: "Allocator | None", kind: type[Allocator]) -> "Any":
        constructor(self._name)
        return getattr(kind if allocator is None else allocator, self._name)


def attach() -> None:
    """Gives allocators the constructors as methods, and those that are native what they leave to NumPy."""
    _firsttouch.set_long(_empty, _zeros)
    for name in NAMES:
        if not hasattr(Allocator, name):
            setattr(Allocator, name, _Method(name))

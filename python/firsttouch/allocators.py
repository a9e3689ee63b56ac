"""Allocators: the sources that obtain memory, and the adaptors that stand on another allocator.

Each function returns an :class:`Allocator`, whose ``repr`` is the expression that makes it. The same expression, as
text, is accepted wherever an allocator is. The functions come from the native module, which declares each allocator
with its options once.
"""

from typing import Any

from _firsttouch_start import units
from firsttouch import _firsttouch
from firsttouch._allocators import (
    aligned,
    calloc,
    filled,
    guarded,
    jemalloc,
    limited,
    malloc,
    mimalloc,
    numa,
    pages,
    pool,
    tracked,
)
from firsttouch._firsttouch import Allocator

__all__ = [
    "Allocator",
    "aligned",
    "calloc",
    "filled",
    "from_functions",
    "guarded",
    "jemalloc",
    "limited",
    "malloc",
    "mimalloc",
    "numa",
    "numpy_default",
    "pages",
    "pool",
    "tracked",
]


def from_functions(
    *, malloc: int, free: int, calloc: int | None = None, realloc: int | None = None, context: int = 0
) -> Allocator:
    """Return an allocator that calls C functions, given by their addresses.

    The functions have the signatures of NEP 49. Sizes are ``size_t``.

    Parameters
    ----------
    malloc : int
        Address of ``void *malloc(void *context, size_t size)``.
    free : int
        Address of ``void free(void *context, void *block, size_t size)``.
    calloc : int, optional
        Address of ``void *calloc(void *context, size_t count, size_t size)``. By default, memory from `malloc` is
        cleared.
    realloc : int, optional
        Address of ``void *realloc(void *context, void *block, size_t size)``. By default, contents are copied to a new
        block.
    context : int, optional
        First argument of every call.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError, ValueError
        If an argument is not an address.

    See Also
    --------
    firsttouch.custom.OwnAllocator : Allocators written in Python.

    Notes
    -----
    The functions are called from any thread, without the GIL. The caller keeps them alive: a :mod:`ctypes` callback
    ends with its Python object.

    Examples
    --------
    >>> import ctypes
    >>> libc = ctypes.CDLL(None)
    >>> hook = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    >>> allocate = hook(lambda context, size: None)  # always out of memory
    >>> release = ctypes.cast(libc.free, ctypes.c_void_p).value
    >>> a = ft.allocators.from_functions(malloc=ctypes.cast(allocate, ctypes.c_void_p).value, free=release)
    >>> try:
    ...     a.empty(1000)
    ... except MemoryError as error:
    ...     print(error)
    Unable to allocate 7.81 KiB ...

    """
    return _firsttouch.from_functions(malloc=malloc, free=free, calloc=calloc, realloc=realloc, context=context)


def numpy_default() -> Allocator:
    """Return NumPy's own allocator, to opt out of another one.

    Returns
    -------
    Allocator

    Examples
    --------
    >>> with ft.use(ft.pool()), ft.use(ft.numpy_default()):
    ...     ft.get_allocator()
    numpy_default()

    """
    return _firsttouch.numpy_default()


# ---- In notebooks and IPython: the expression, and the state of each level -------------------------------------------

#: The statistics to show, with their labels; the names of byte counts come first.
_BYTES = {"in_use": "in use", "peak_in_use": "peak", "idle": "idle", "mapped": "mapped", "purged_bytes": "given back"}
_COUNTS = {"blocks": "blocks", "allocations": "allocations", "recycled": "recycled", "failures": "failures"}


def escape(text: str) -> str:
    """Escape text for HTML, as :func:`html.escape`; importing `html` loads a table of all entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _levels(allocator: Allocator) -> list[Allocator]:
    """Return the allocator, its upstream, and so on down to the source."""
    found: list[Allocator] = []
    at: Allocator | None = allocator
    while at is not None:
        found.append(at)
        at = _firsttouch.upstream(at)
    return found


def _state(allocator: Allocator) -> dict[str, str]:
    """Return the state of one level in words; empty if it keeps no statistics."""
    if _firsttouch.is_tracked(allocator):
        return _tally(_firsttouch.tally(allocator))
    found = _firsttouch.stats(allocator)
    if not found["allocations"] and not found["failures"]:
        return {}
    rows = {label: units.size(found[name]) for name, label in _BYTES.items()}
    rows |= {label: f"{found[name]:,}" for name, label in _COUNTS.items()}
    return {
        label: text for label, text in rows.items() if text not in ("0", "0 bytes") or label in ("in use", "blocks")
    }


def _tally(found: dict[str, Any]) -> dict[str, str]:
    rows = {"in use": "live_bytes", "peak": "peak_bytes", "ever": "allocated_bytes"}
    counts = {"blocks": "live_blocks", "allocations": "allocations"}
    shown = {label: units.size(found[name]) for label, name in rows.items()}
    return shown | {label: f"{found[name]:,}" for label, name in counts.items()}


def _name(level: Allocator) -> str:
    """Return the level's own part of the expression: its name, and its options without the upstream."""
    return repr(level) if _firsttouch.upstream(level) is None else _firsttouch.level(level)


def _html_of(self: Allocator) -> str:
    """Return a table for notebooks."""
    rows = []
    for level in _levels(self):
        found = _state(level) or {"state": "no statistics, or no requests yet"}
        rows.append(f'<tr><th colspan="2" style="text-align:left"><code>{escape(_name(level))}</code></th></tr>')
        rows += [f"<tr><td>{label}</td><td>{escape(text)}</td></tr>" for label, text in found.items()]
    return f"<table><caption><code>{escape(repr(self))}</code></caption>{''.join(rows)}</table>"


def _pretty(self: Allocator, printer: Any, cycle: bool) -> None:  # noqa: ARG001
    """Print lines for IPython; the plain `repr` stays the expression."""
    printer.text(repr(self))
    for level in _levels(self):
        found = _state(level)
        if not found:
            continue
        printer.break_()
        printer.text(f"  {_name(level)}")
        for label, text in found.items():
            printer.break_()
            printer.text(f"    {label:12} {text}")


Allocator._repr_html_ = _html_of  # type: ignore[attr-defined]
Allocator._repr_pretty_ = _pretty  # type: ignore[attr-defined]

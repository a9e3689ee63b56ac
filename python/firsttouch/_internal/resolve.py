"""Conversion of arguments to allocators, and the errors for everything else."""

import functools
from collections.abc import Callable
from typing import Literal

from _firsttouch_start import hook
from firsttouch import _allocators, _firsttouch
from firsttouch._firsttouch import Allocator, FixedBuffer, ScratchBuffer, evaluate_expression
from firsttouch.custom import AllocatorLike, OwnAllocator


def _refuse_addresses(*_given: object, **_named: object) -> Allocator:
    """Refuse to make an allocator that would call whatever lies at the addresses in a text."""
    raise ValueError(
        "from_functions() cannot be written as text, which must not name addresses of code: "
        "call firsttouch.allocators.from_functions(), and give the allocator that it returns"
    )


FACTORIES: dict[str, Callable[..., Allocator]] = {
    "FixedBuffer": FixedBuffer,
    "ScratchBuffer": ScratchBuffer,
    "from_functions": _refuse_addresses,
    "numpy_default": _firsttouch.numpy_default,
}
"""The functions that expressions know in addition to the core's allocators, by name."""

_firsttouch.register(budget_made=hook.add_reasons)

_REMEMBERED = 64

_installed: dict[str, Allocator] = {}
"""The allocators that were installed by their text. They are never dropped, so they need not be made again either."""


def parse(text: str) -> Allocator:
    """Return a new allocator from its expression, as on the command line.

    Raises :exc:`ValueError` or :exc:`TypeError` that show the text and what is wrong with it.
    """
    return evaluate_expression(text, FACTORIES)


@functools.lru_cache(maxsize=_REMEMBERED)
def _of_text(text: str) -> Allocator:
    """Return the allocator of a text: the same one each time, so that a pool stays warm and a budget is shared."""
    return parse(text)


def checked(allocator: object, caller: str) -> Allocator:
    """Return the allocator that an argument is, describes or implements; otherwise raise a helpful :exc:`TypeError`."""
    if isinstance(allocator, Allocator):
        return allocator
    if isinstance(allocator, str):
        installed = _installed.get(allocator)
        return _of_text(allocator) if installed is None else installed
    name = getattr(allocator, "__name__", None)
    if callable(allocator) and isinstance(name, str) and (name in FACTORIES or hasattr(_allocators, name)):
        raise TypeError(f"{caller} got the function firsttouch.{name}: did you mean firsttouch.{name}()?")
    is_own = isinstance(allocator, OwnAllocator) and not isinstance(allocator, type)
    if is_own and caller == "install()":
        raise TypeError(
            f"install() cannot take {type(allocator).__name__}, an allocator written in Python: memory that serves "
            "every thread is given back without the GIL; give C functions to firsttouch.allocators.from_functions(), "
            "or use use()"
        )
    if is_own:
        hook.add_reasons()
        return _firsttouch.own(allocator)
    raise TypeError(
        f"{caller} takes an allocator, like firsttouch.pool(), not {type(allocator).__name__}: {allocator!r:.80}"
    )


def keep_installed(text: str, allocator: Allocator) -> None:
    """Let a text name an allocator that was installed, from now on."""
    _installed.setdefault(text, allocator)


def chosen(allocator: AllocatorLike | Literal["process"] | None, caller: str) -> Allocator | None:
    """Return the named allocator: ``None`` names the current one; the result ``None`` stands for the process's own."""
    if allocator is None:
        return _firsttouch.current()
    if isinstance(allocator, str) and allocator == "process":
        return None
    return checked(allocator, caller)


_firsttouch.register(checked=checked)

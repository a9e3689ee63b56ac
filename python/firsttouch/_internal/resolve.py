"""Conversion of arguments to allocators, and the errors for everything else."""

import functools

from _firsttouch_start import add_reasons
from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch.custom import AllocatorLike, OwnAllocator

add_reasons()

_REMEMBERED = 64


def parse(text: str) -> Allocator:
    """Return a new allocator from its expression, as on the command line.

    Raises :exc:`ValueError` or :exc:`TypeError` that show the text and what is wrong with it.
    """
    if text.strip() in ("numpy_default", "numpy_default()"):  # which the core does not know
        return _firsttouch.numpy_default()
    return _firsttouch.parse(text)


@functools.lru_cache(maxsize=_REMEMBERED)
def _of_text(text: str) -> Allocator:
    """Return the allocator of a text: the same one each time, so that a pool stays warm and a budget is shared."""
    return parse(text)


def checked(allocator: object, caller: str) -> Allocator:
    """Return the allocator that an argument is, describes or implements; otherwise raise a helpful :exc:`TypeError`."""
    if isinstance(allocator, Allocator):
        return allocator
    if isinstance(allocator, str):
        return _of_text(allocator)
    name = getattr(allocator, "__name__", None)
    if callable(allocator) and name in (*_firsttouch._allocators.__all__, "numpy_default"):
        raise TypeError(f"{caller} got the function firsttouch.{name}: did you mean firsttouch.{name}()?")
    if isinstance(allocator, OwnAllocator) and not isinstance(allocator, type):
        return _firsttouch.own(allocator)
    kind = type(allocator).__name__
    lacks = [name for name in ("allocate", "deallocate") if not hasattr(allocator, name)]
    if len(lacks) == 1:
        kind += f", which has no {lacks[0]}()"
    raise TypeError(f"{caller} takes an allocator, like firsttouch.pool(), not {kind}: {allocator!r:.80}")


def given(allocator: AllocatorLike | None, caller: str) -> Allocator | None:
    """Return the same, or ``None``, which stands for the default of the process."""
    return None if allocator is None else checked(allocator, caller)


_firsttouch.register(checked=checked)

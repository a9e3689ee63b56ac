"""The factories of allocators that bring memory in, named after what they make."""

from typing import Literal

from firsttouch import _firsttouch, arguments
from firsttouch._firsttouch import Allocator
from firsttouch.arguments import Size
from firsttouch.checking import checked, factory

__all__ = [
    "Size",
    "aligned",
    "calloc",
    "checked",
    "from_functions",
    "jemalloc",
    "malloc",
    "mimalloc",
    "numpy_default",
    "pages",
]


@factory
def pages(huge: Literal[False, "thp"] = False) -> Allocator:
    """Anonymous memory, fresh from the system for every array and given back at once.

    ``huge``: ``"thp"`` asks for transparent huge pages, and aligns to them, from one huge page on.
    """
    return _firsttouch.pages(huge)


@factory
def malloc() -> Allocator:
    """The C library's ``malloc``, aligned to 64 bytes. For :func:`use`; :func:`install` can't take it."""
    return _firsttouch.malloc()


@factory
def calloc() -> Allocator:
    """The C library's ``calloc``: arrays read zero, ``np.empty`` included. For :func:`use`."""
    return _firsttouch.calloc()


@factory
def aligned(alignment: Size) -> Allocator:
    """Memory at multiples of ``alignment`` bytes, a power of two up to 1 GiB; lazily zeroed. For :func:`use`.

    Raises :exc:`ValueError` for any other number, :exc:`TypeError` for what is none.
    """
    number = arguments.size("alignment", alignment)
    if number == 0:
        raise ValueError("alignment=0: give a power of two from 1 byte to 1 GiB")
    return _firsttouch.aligned(number)


@factory
def mimalloc() -> Allocator:
    """Microsoft's mimalloc, one for the process, on memory of firsttouch's own.

    Raises :exc:`UnsupportedError` in a build without it.
    """
    return _firsttouch.mimalloc()


@factory
def jemalloc() -> Allocator:
    """The allocator of FreeBSD and Meta, jemalloc, one for the process, on memory of firsttouch's own.

    Raises :exc:`UnsupportedError` in a build without it.
    """
    return _firsttouch.jemalloc()


@factory
def from_functions(
    *, malloc: int, free: int, calloc: int | None = None, realloc: int | None = None, context: int = 0
) -> Allocator:
    """C functions as an allocator, by their addresses, in the form of NEP 49; they are called without the GIL.

    ``malloc(context, size)``, ``calloc(context, count, size)``, ``realloc(context, block, size)`` and
    ``free(context, block, size)``; sizes are ``size_t``. Without ``calloc`` memory is cleared, without ``realloc``
    content is copied. ``context`` is handed to each as it is. Whoever gives the functions keeps them alive: a callback
    of :mod:`ctypes` is gone with its Python object. Any thread may call them.

    Raises :exc:`TypeError` or :exc:`ValueError` for what is no address.
    """
    return _firsttouch.from_functions(
        arguments.function("malloc", malloc),
        None if calloc is None else arguments.function("calloc", calloc),
        None if realloc is None else arguments.function("realloc", realloc),
        arguments.function("free", free),
        arguments.address("context", context),
    )


@factory
def numpy_default() -> Allocator:
    """NumPy's own allocator, to opt out in a block: ``with use(numpy_default()): ...``."""
    return _firsttouch.numpy_default()

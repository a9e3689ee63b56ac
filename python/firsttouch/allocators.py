"""The factories of allocators that bring memory in, named after what they make."""

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal import validation
from firsttouch._internal.resolve import FACTORIES, checked, factory
from firsttouch._internal.validation import Size
from firsttouch.placement.pages import Huge, numa, placed
from firsttouch.placement.policies import PolicyLike

__all__ = [
    "Size",
    "aligned",
    "calloc",
    "checked",
    "from_functions",
    "jemalloc",
    "malloc",
    "mimalloc",
    "numa",
    "numpy_default",
    "pages",
]


@factory
def pages(
    huge: Huge = False,
    *,
    populate: bool | int = False,
    lock: bool = False,
    numa: PolicyLike | None = None,
    strict: bool = False,
    progress: bool = False,
) -> Allocator:
    """Anonymous memory, fresh from the system for every array and given back at once.

    ``huge``: ``"thp"`` asks for transparent huge pages, and aligns to them, from one huge page on; ``"2M"`` or ``"1G"``
    for explicit ones, where they waste no more than an eighth (or 2 MiB); a tuple for the first that can be had; base
    pages otherwise. ``populate``: makes pages real before the constructor returns, by as many threads as suit or by so
    many, without the GIL; Ctrl-C ends it. ``lock``: keeps them in memory (``mlock``). ``numa``: a node's number or a
    policy (:class:`~firsttouch.placement.policies.Policy`); what a policy or cpuset from outside allows is never
    widened. What could not be had stands in :func:`receipt`; with ``strict`` it is a :exc:`MemoryError`. ``progress``:
    draws a bar on standard error while an array is populated.

    Raises :exc:`ValueError` or :exc:`TypeError` that show what was given and what is accepted: sizes and nodes of this
    machine. Arrays raise :exc:`MemoryError` where more is to be populated than is available, and where
    ``RLIMIT_MEMLOCK`` does not allow ``lock``.
    """
    return placed(huge, populate, lock, numa, strict, progress)


FACTORIES["numa"] = numa


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
    number = validation.size("alignment", alignment)
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
        validation.function("malloc", malloc),
        None if calloc is None else validation.function("calloc", calloc),
        None if realloc is None else validation.function("realloc", realloc),
        validation.function("free", free),
        validation.address("context", context),
    )


@factory
def numpy_default() -> Allocator:
    """NumPy's own allocator, to opt out in a block: ``with use(numpy_default()): ...``."""
    return _firsttouch.numpy_default()

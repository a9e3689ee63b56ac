"""Allocators: the sources that obtain memory, and the adaptors that stand on another allocator.

Each function returns an :class:`Allocator`, whose ``repr`` is the expression that makes it. The same expression, as
text, is accepted wherever an allocator is. The functions come from the native module, which declares each allocator
with its options once (``spec.rs``).
"""

from firsttouch import _firsttouch
from firsttouch._allocators import *  # noqa: F403 (those of the declaration)
from firsttouch._firsttouch import Allocator

__all__ = ["Allocator", "from_functions", "numpy_default"]
__all__ += _firsttouch._allocators.__all__
__all__.sort()


def from_functions(*, malloc: int, free: int, calloc: int | None = None, context: int = 0) -> Allocator:
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
    return _firsttouch.from_functions(malloc=malloc, free=free, calloc=calloc, context=context)


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

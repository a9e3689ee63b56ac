"""The sources: allocators that obtain memory themselves."""

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator, make
from firsttouch._internal.validation import Size
from firsttouch.placement.pages import Huge
from firsttouch.placement.policies import PolicyLike, plain


def pages(
    huge: Huge = False,
    *,
    populate: bool | int = False,
    lock: bool = False,
    numa: PolicyLike | None = None,
    strict: bool = False,
    progress: bool = False,
) -> Allocator:
    """Return an allocator that maps fresh pages for every array and unmaps them when the array is freed.

    Parameters
    ----------
    huge : False, str or sequence of these, optional
        Page size. ``False`` (default) means base pages, ``"thp"`` transparent huge pages, and a size such as ``"2M"``
        or ``"1G"`` explicit huge pages. Of a sequence, the first page size that is available is used. Explicit huge
        pages are used where rounding up wastes at most an eighth of the block, or 2 MiB.
    populate : bool or int, optional
        Whether pages are faulted in before the constructor returns. An integer is the number of threads; ``True``
        lets firsttouch choose it. Populating releases the GIL and can be interrupted by Ctrl-C.
    lock : bool, optional
        Whether pages are locked in memory (``mlock``).
    numa : int, str or Policy, optional
        Node or policy to allocate from, such as ``1`` or ``"interleave:all"``. ``None`` (default) sets no policy. A
        policy or cpuset imposed from outside is never widened.
    strict : bool, optional
        Whether a request that cannot be granted in full raises :exc:`MemoryError` instead of being recorded in the
        receipt.
    progress : bool, optional
        Whether a progress bar is drawn on standard error while an array is populated.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above, or this machine has no such page size or node.

    See Also
    --------
    numa : The same, by node or policy.
    pool : Recycle blocks instead of unmapping them.
    receipt : What was granted for an array.

    Notes
    -----
    Mapping and faulting in new pages costs more than the arithmetic on most temporaries; put a :func:`pool` on top for
    arrays that come and go. Arrays raise :exc:`MemoryError` where more is to be populated than is available, or where
    ``RLIMIT_MEMLOCK`` does not allow `lock`.

    Examples
    --------
    >>> a = ft.pages(huge="thp", populate=True).zeros(10**6)
    >>> ft.receipt(a).populated
    True

    """
    return make(
        "pages",
        huge,
        populate=populate,
        lock=lock,
        numa=plain(numa),
        strict=strict,
        progress=progress,
    )


def malloc() -> Allocator:
    """Return an allocator on the C library's ``malloc``, aligned to 64 bytes.

    Returns
    -------
    Allocator

    Notes
    -----
    For constructors and :func:`use`. :func:`install` refuses it, as its blocks cannot be recognized by address.

    Examples
    --------
    >>> ft.malloc().empty(1000).ctypes.data % 64
    0

    """
    return make("malloc")


def calloc() -> Allocator:
    """Return an allocator on the C library's ``calloc``: every array reads zero, ``empty`` included.

    Returns
    -------
    Allocator

    Examples
    --------
    >>> ft.calloc().empty(4)
    array([0., 0., 0., 0.])

    """
    return make("calloc")


def aligned(alignment: Size) -> Allocator:
    """Return an allocator of lazily zeroed memory at multiples of `alignment`.

    Parameters
    ----------
    alignment : int or str
        Alignment in bytes, a power of two up to 1 GiB. Text such as ``"4 KiB"`` is accepted.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError
        If `alignment` is not a size.
    ValueError
        If `alignment` is not a power of two, or exceeds 1 GiB.

    Notes
    -----
    For constructors and :func:`use`. :func:`install` refuses it, as its blocks cannot be recognized by address.

    Examples
    --------
    >>> a = ft.aligned(4096).empty(100)  # as O_DIRECT needs it
    >>> a.ctypes.data % 4096
    0

    """
    return make("aligned", alignment)


def mimalloc() -> Allocator:
    """Return the process's mimalloc, Microsoft's allocator, built in.

    Returns
    -------
    Allocator

    Raises
    ------
    UnsupportedError
        If firsttouch was built without mimalloc.

    Examples
    --------
    >>> ft.mimalloc().zeros(3)
    array([0., 0., 0.])

    """
    return make("mimalloc")


def jemalloc() -> Allocator:
    """Return the process's jemalloc, the allocator of FreeBSD and Meta, built in.

    Returns
    -------
    Allocator

    Raises
    ------
    UnsupportedError
        If firsttouch was built without jemalloc.

    Examples
    --------
    >>> ft.jemalloc().zeros(3)
    array([0., 0., 0.])

    """
    return make("jemalloc")


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
    >>> a = ft.from_functions(malloc=ctypes.cast(allocate, ctypes.c_void_p).value, free=release)
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

"""Arrays from values: ``array``, ``asarray``, ``copy``, ``arange``, ``linspace`` and ``fromiter``."""

from typing import Any

from firsttouch._constructing import NUMPYS, made, satisfying


def array(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return an array from any object that NumPy can convert.

    Parameters
    ----------
    object : array_like
        Array, sequence, nested sequence or scalar.
    dtype, order, subok, ndmin, ndmax, like : optional
        As for :func:`numpy.array`; `ndmax` from NumPy 2.4 on.
    copy : bool or None, optional
        ``True`` (default) always copies. ``None`` copies if necessary, which includes memory that is not the
        allocator's. ``False`` raises :exc:`ValueError` if a copy is necessary.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of the values of `object`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.array : Equivalent function of NumPy.
    asarray : Copy only if necessary.

    Examples
    --------
    >>> ft.array([[1, 2], [3, 4]], float, allocator="aligned(4096)")
    array([[1., 2.],
           [3., 4.]])

    """
    return satisfying(NUMPYS["array"], args, kwargs, allocator)


def asarray(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return an object as an array, without a copy if its type and its memory are right.

    Parameters
    ----------
    a : array_like
        Array, sequence, nested sequence or scalar.
    dtype, order, device, like : optional
        As for :func:`numpy.asarray`.
    copy : bool or None, optional
        As for :func:`array`. The default is ``None``: copy if necessary.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        `a` itself if no copy is necessary.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.asarray : Equivalent function of NumPy.
    array : Copy by default.

    Notes
    -----
    An array whose address is a multiple of 4096 satisfies ``aligned(4096)``, whichever allocator made it; other
    allocators require memory of their own.

    Examples
    --------
    >>> a = ft.pages().zeros(1000)
    >>> ft.asarray(a, allocator="aligned(4096)") is a
    True
    >>> ft.asarray(a, allocator="pool()") is a
    False

    """
    return satisfying(NUMPYS["asarray"], args, kwargs, allocator)


def copy(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a copy of an array.

    Parameters
    ----------
    a : array_like
        Array to copy.
    order, subok : optional
        As for :func:`numpy.copy`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Copy of `a`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.copy : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.copy(np.arange(3), allocator="pool()")
    array([0, 1, 2])

    """
    return satisfying(NUMPYS["copy"], args, kwargs, allocator)


def arange(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return evenly spaced values within an interval.

    Parameters
    ----------
    start_or_stop : number
        Start of the interval or, given alone, its end; the start is then 0.
    stop : number, optional
        End of the interval, which it does not include.
    step : number, optional
        Spacing between values.
    dtype, device, like : optional
        As for :func:`numpy.arange`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        One-dimensional array of the values.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.arange : Equivalent function of NumPy.
    linspace : By the number of values.

    Examples
    --------
    >>> ft.arange(3, allocator="pool()")
    array([0, 1, 2])

    """
    return made(NUMPYS["arange"], args, kwargs, allocator)


def linspace(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return evenly spaced numbers over an interval.

    Parameters
    ----------
    start, stop : array_like
        Start and end of the interval.
    num : int, optional
        Number of values.
    endpoint : bool, optional
        Whether `stop` is the last value.
    retstep : bool, optional
        Whether the spacing is returned as well.
    dtype, axis, device : optional
        As for :func:`numpy.linspace`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    samples : ndarray
        Array of `num` values.
    step : float
        Spacing between values; only if `retstep` is true.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.linspace : Equivalent function of NumPy.
    arange : By the spacing.

    Notes
    -----
    Intermediate arrays come from the allocator as well.

    Examples
    --------
    >>> ft.linspace(0, 1, 5, allocator="pool()")
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])

    """
    return made(NUMPYS["linspace"], args, kwargs, allocator)


def fromiter(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a one-dimensional array from an iterable.

    Parameters
    ----------
    iter : iterable
        Values of the array.
    dtype : data-type
        Data type of the array.
    count : int, optional
        Number of values to read. The default, -1, reads all of them.
    like : optional
        As for :func:`numpy.fromiter`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        One-dimensional array of the values.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.fromiter : Equivalent function of NumPy.

    Notes
    -----
    Arrays that the iterator makes meanwhile come from the allocator as well.

    Examples
    --------
    >>> ft.fromiter((n * n for n in range(4)), int, allocator="pool()")
    array([0, 1, 4, 9])

    """
    return made(NUMPYS["fromiter"], args, kwargs, allocator)

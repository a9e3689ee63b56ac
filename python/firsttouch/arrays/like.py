"""Arrays like another one: ``empty_like``, ``zeros_like``, ``ones_like`` and ``full_like``."""

from typing import Any

from firsttouch._constructing import NUMPYS, made


def empty_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a new uninitialized array with the shape and type of another.

    Parameters
    ----------
    prototype : array_like
        Array whose shape, dtype and memory order are used.
    dtype, order, subok, shape, device : optional
        As for :func:`numpy.empty_like`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of uninitialized values with the shape and dtype of `prototype`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.empty_like : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.empty_like(np.ones((2, 3)), allocator="pool()").shape
    (2, 3)

    """
    return made(NUMPYS["empty_like"], args, kwargs, allocator)


def zeros_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return an array of zeros with the shape and type of another.

    Parameters
    ----------
    a : array_like
        Array whose shape, dtype and memory order are used.
    dtype, order, subok, shape, device : optional
        As for :func:`numpy.zeros_like`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of zeros with the shape and dtype of `a`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.zeros_like : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.zeros_like([1, 2, 3], allocator="pool()")
    array([0, 0, 0])

    """
    return made(NUMPYS["zeros_like"], args, kwargs, allocator)


def ones_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return an array of ones with the shape and type of another.

    Parameters
    ----------
    a : array_like
        Array whose shape, dtype and memory order are used.
    dtype, order, subok, shape, device : optional
        As for :func:`numpy.ones_like`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of ones with the shape and dtype of `a`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.ones_like : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.ones_like([1, 2, 3], allocator="pool()")
    array([1, 1, 1])

    """
    return made(NUMPYS["ones_like"], args, kwargs, allocator)


def full_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return an array of a value with the shape and type of another.

    Parameters
    ----------
    a : array_like
        Array whose shape, dtype and memory order are used.
    fill_value : scalar or array_like
        Fill value.
    dtype, order, subok, shape, device : optional
        As for :func:`numpy.full_like`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of `fill_value` with the shape and dtype of `a`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.full_like : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.full_like([1, 2, 3], 7, allocator="pool()")
    array([7, 7, 7])

    """
    return made(NUMPYS["full_like"], args, kwargs, allocator)

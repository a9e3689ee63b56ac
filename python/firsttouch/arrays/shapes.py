"""Arrays by shape: ``empty``, ``zeros``, ``ones``, ``full`` and ``eye``."""

from typing import Any

from firsttouch._constructing import NUMPYS, made


def empty(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a new uninitialized array of the given shape and type.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the new array.
    dtype, order, device, like : optional
        As for :func:`numpy.empty`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of uninitialized values; from ``calloc()`` they are zero, and objects are ``None``.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.empty : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.empty((2, 3), np.float32, allocator="aligned(4096)").shape
    (2, 3)

    """
    return made(NUMPYS["empty"], args, kwargs, allocator)


def zeros(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a new array of the given shape and type, filled with zeros.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the new array.
    dtype, order, device, like : optional
        As for :func:`numpy.zeros`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of zeros with the given shape, dtype and order.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.zeros : Equivalent function of NumPy.

    Notes
    -----
    Pages of fresh memory are faulted in when they are first written, whatever the size of the array.

    Examples
    --------
    >>> ft.zeros((2, 3), allocator=ft.pages(huge="thp"))
    array([[0., 0., 0.],
           [0., 0., 0.]])

    """
    return made(NUMPYS["zeros"], args, kwargs, allocator)


def ones(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a new array of the given shape and type, filled with ones.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the new array.
    dtype, order, device, like : optional
        As for :func:`numpy.ones`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of ones with the given shape, dtype and order.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.ones : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.ones(3, int, allocator="pool()")
    array([1, 1, 1])

    """
    return made(NUMPYS["ones"], args, kwargs, allocator)


def full(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a new array of the given shape and type, filled with a value.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the new array.
    fill_value : scalar or array_like
        Fill value, which is broadcast to `shape`.
    dtype, order, device, like : optional
        As for :func:`numpy.full`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of `fill_value` with the given shape, dtype and order.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.full : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.full(3, 0.5, allocator="mimalloc()")
    array([0.5, 0.5, 0.5])

    """
    return made(NUMPYS["full"], args, kwargs, allocator)


def eye(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """Return a two-dimensional array with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    N : int
        Number of rows.
    M : int, optional
        Number of columns. The default is `N`.
    k : int, optional
        Index of the diagonal; positive values are above the main diagonal.
    dtype, order, device, like : optional
        As for :func:`numpy.eye`.
    allocator : AllocatorLike, optional
        Allocator that the memory comes from. The default is the current one.

    Returns
    -------
    ndarray
        Array of shape (N, M).

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
    MemoryError
        If there is not enough memory; it states what was requested and which limit was exceeded.

    See Also
    --------
    numpy.eye : Equivalent function of NumPy.

    Examples
    --------
    >>> ft.eye(2, allocator="pool()")
    array([[1., 0.],
           [0., 1.]])

    """
    return made(NUMPYS["eye"], args, kwargs, allocator)

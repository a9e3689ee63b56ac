"""NumPy's ways to make an array, with a choice of memory: ``firsttouch.zeros`` is a drop-in for ``numpy.zeros``.

Each function accepts what NumPy's function of the same name accepts, and `allocator`. Every allocator has them as
methods: ``ft.aligned(64).zeros((4, 4), np.float32)``. Arrays are aligned to 64 bytes, or as the allocator guarantees;
those of pools from the `small_limit` of :func:`firsttouch.stats` on. Other functions of NumPy take their memory from an
allocator in a block: ``with ft.use(allocator): np.arange(10)``.

Errors are NumPy's, except that a :exc:`MemoryError` states what was requested, what was available and which limit was
exceeded. Exceptions of a custom allocator are propagated.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from _firsttouch_start import asked
from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal.resolve import checked


class _Row(NamedTuple):
    """What a docstring says about one of NumPy's functions."""

    returns: str
    parameters: str
    example: str
    notes: str = ""


_SHAPE = "shape : int or tuple of int\n    Shape of the new array."
_LIKE = "a : array_like\n    Array whose shape, dtype and memory order are used."
_FILL = "fill_value : scalar or array_like\n    Fill value, which is broadcast to the shape."

_TABLE = {
    "array": _Row(
        "an array from any object that NumPy can convert",
        "object : array_like\n    Array, sequence, nested sequence or scalar.\n"
        "copy : bool or None, optional\n    ``True`` (default) always copies. ``None`` copies if necessary, which\n"
        "    includes memory that is not the allocator's. ``False`` raises\n"
        "    :exc:`ValueError` if a copy is necessary.",
        '>>> ft.array([[1, 2], [3, 4]], float, allocator="aligned(4096)")\narray([[1., 2.],\n       [3., 4.]])',
    ),
    "empty": _Row(
        "a new uninitialized array of the given shape and type",
        _SHAPE,
        '>>> ft.empty((2, 3), np.float32, allocator="aligned(4096)").shape\n(2, 3)',
        "From ``calloc()`` the values are zero.",
    ),
    "empty_like": _Row(
        "a new uninitialized array with the shape and type of another",
        _LIKE.replace("a :", "prototype :"),
        '>>> ft.empty_like(np.ones((2, 3)), allocator="pool()").shape\n(2, 3)',
    ),
    "full": _Row(
        "a new array of the given shape and type, filled with a value",
        f"{_SHAPE}\n{_FILL}",
        '>>> ft.full(3, 0.5, allocator="mimalloc()")\narray([0.5, 0.5, 0.5])',
    ),
    "full_like": _Row(
        "an array of a value with the shape and type of another",
        f"{_LIKE}\n{_FILL}",
        '>>> ft.full_like([1, 2, 3], 7, allocator="pool()")\narray([7, 7, 7])',
    ),
    "ones": _Row(
        "a new array of the given shape and type, filled with ones",
        _SHAPE,
        '>>> ft.ones(3, int, allocator="pool()")\narray([1, 1, 1])',
    ),
    "ones_like": _Row(
        "an array of ones with the shape and type of another",
        _LIKE,
        '>>> ft.ones_like([1, 2, 3], allocator="pool()")\narray([1, 1, 1])',
    ),
    "zeros": _Row(
        "a new array of the given shape and type, filled with zeros",
        _SHAPE,
        '>>> ft.zeros((2, 3), allocator=ft.pages(huge="thp"))\narray([[0., 0., 0.],\n       [0., 0., 0.]])',
        "Pages of fresh memory are faulted in when they are first written, whatever the size of the array.",
    ),
    "zeros_like": _Row(
        "an array of zeros with the shape and type of another",
        _LIKE,
        '>>> ft.zeros_like([1, 2, 3], allocator="pool()")\narray([0, 0, 0])',
    ),
}

__all__ = list(_TABLE)

# ---- The work: NumPy's function, with an allocator -------------------------------------------------------------------

_Constructor = Callable[..., Any]

_NUMPYS = _firsttouch.numpy_default()
_numpy_array = np.array


def _made(constructor: _Constructor, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Return what ``constructor`` returns; a :exc:`MemoryError` of NumPy's is extended by the limit exceeded."""
    failed = _firsttouch.last_failure()
    _firsttouch.take_error()  # of an earlier request whose caller did not take it
    own: BaseException | None
    try:
        return constructor(*arguments, **named)
    except MemoryError as error:
        own = error.__cause__ or _firsttouch.take_error()
        if own is None:
            found = _firsttouch.last_failure()
            is_ours = found is not None and (found != failed or found[0] == asked(error))
            if found is None or not is_ours or _firsttouch.current() == _NUMPYS:
                raise
            raise MemoryError(f"{str(error) or 'no memory for the array'}: {found[2]}") from error
    raise own


def _on(allocator: Allocator, constructor: _Constructor, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Return what ``constructor`` returns, on memory of ``allocator``."""
    before = _firsttouch.enter(allocator)
    try:
        return _made(constructor, arguments, named)
    finally:
        _firsttouch.leave(before)


def _array_on(
    allocator: Allocator, constructor: _Constructor, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> Any:
    """As `_on`, for a constructor that may return its argument; one on another allocator's memory is copied."""
    found = _on(allocator, constructor, arguments, named)
    if not isinstance(found, np.ndarray) or _firsttouch.accepts(allocator, found):
        return found
    copy = named.get("copy")
    try:
        is_forbidden = copy is not None and not copy
    except ValueError:  # a mode of NumPy's that has no truth value
        is_forbidden = False
    if is_forbidden:
        raise ValueError(
            "Unable to avoid copy while creating an array as requested: "
            f"its memory does not come from {allocator!r}; give copy=None to allow one"
        )
    return _on(allocator, _numpy_array, (found,), {"copy": True, "order": "K", "subok": True})


#: Signatures of the functions written in C, which NumPy publishes from 2.4 on.
_IN_C: dict[str, _Constructor] = {
    "empty": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "zeros": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: ...,  # noqa: ARG005
    "array": lambda object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None: ...,  # noqa: A006, ARG005
}


def _signature(constructor: _Constructor) -> inspect.Signature:
    """Return NumPy's signature."""
    text = getattr(constructor, "__text_signature__", None)
    try:
        # Compiling NumPy's own signature takes a fraction of the time of inspect, which counts at every import.
        return inspect.signature(eval(f"(lambda {text[1:-1]}: ...)") if text else constructor)
    except ValueError:
        return inspect.signature(_IN_C[constructor.__name__])


# ---- The functions and methods that users see ------------------------------------------------------------------------


def _docstring(name: str, parameters: Iterable[str]) -> str:
    row = _TABLE[name]
    others = ", ".join(each for each in parameters if f"{each} : " not in row.parameters)
    notes = f"Notes\n-----\n{row.notes}\n\n" if row.notes else ""
    return f"""Return {row.returns}.

Parameters
----------
{row.parameters}
{others} : optional
    As for :func:`numpy.{name}`.
allocator : AllocatorLike, optional
    Allocator that the memory comes from. The default is the current one.

Returns
-------
ndarray

Raises
------
TypeError, ValueError
    If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
MemoryError
    If there is not enough memory; it states what was requested and which limit was exceeded.

See Also
--------
numpy.{name} : Equivalent function of NumPy.

{notes}Examples
--------
{row.example}
"""


def _make(name: str) -> None:
    """Make the function and the method of a constructor."""
    numpys = getattr(np, name)  # now: replacing NumPy's functions by these must not recurse for ever
    work = _array_on if name == "array" else _on

    def method(self: Allocator, *args: Any, **kwargs: Any) -> Any:
        return work(self, numpys, args, kwargs)

    # `empty` and `zeros` are native methods, which call this one unless shape and type are plain.
    native = getattr(Allocator, name, None)
    call = method if native is None else native

    def function(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
        try:
            if allocator is None:
                return _made(numpys, args, kwargs)
            given = allocator if isinstance(allocator, Allocator) else checked(allocator, f"{name}()")
            return call(given, *args, **kwargs)
        except TypeError:
            for word in kwargs:
                if word not in known.parameters and (hint := _firsttouch.did_you_mean(word, ["allocator"])):
                    raise TypeError(f"{name}() got an unexpected keyword argument {word!r}{hint}") from None
            raise

    known = _signature(numpys)
    parameters = list(known.parameters.values())
    one = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    last = inspect.Parameter("allocator", inspect.Parameter.KEYWORD_ONLY, default=None)
    function.__signature__ = known.replace(parameters=[*parameters, last])  # type: ignore[attr-defined]
    method.__signature__ = known.replace(parameters=[one, *parameters])  # type: ignore[attr-defined]
    function.__name__, function.__qualname__, function.__module__ = name, name, "firsttouch"
    method.__name__, method.__qualname__, method.__module__ = name, f"Allocator.{name}", "firsttouch"
    function.__doc__ = _docstring(name, known.parameters)
    method.__doc__ = f"Return {_TABLE[name].returns}, on this allocator's memory.\n\nAs :func:`firsttouch.{name}`."
    globals()[name] = function
    if native is None:
        setattr(Allocator, name, method)
    else:
        _firsttouch.register(**{name: method})


for _name in _TABLE:
    _make(_name)

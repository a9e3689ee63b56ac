"""NumPy's constructors with an allocator: NumPy does the work, on memory of the allocator."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from firsttouch import _firsttouch, context
from firsttouch._firsttouch import Allocator
from firsttouch._internal.memory_error import explained
from firsttouch._internal.resolve import checked
from firsttouch.placement import slabs

Constructor = Callable[..., Any]

_NUMPYS = _firsttouch.numpy_default()

NUMPYS: dict[str, Constructor] = {
    name: getattr(np, name)
    for name in (
        *("arange", "array", "asarray", "copy", "empty", "empty_like", "eye", "fromiter", "full", "full_like"),
        *("linspace", "ones", "ones_like", "zeros", "zeros_like"),
    )
}
"""NumPy's functions at import time, so that replacing them by these does not cause infinite recursion."""

#: Signatures of the functions written in C, which NumPy publishes from 2.4 on.
_IN_C: dict[str, Constructor] = {
    "empty": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "zeros": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: ...,  # noqa: ARG005
    "array": lambda object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None: ...,  # noqa: A006, ARG005
    "asarray": lambda a, dtype=None, order=None, *, device=None, copy=None, like=None: ...,  # noqa: ARG005
    "arange": lambda start_or_stop, /, stop=None, step=1, *, dtype=None, device=None, like=None: ...,  # noqa: ARG005
    "fromiter": lambda iter, dtype, count=-1, *, like=None: ...,  # noqa: A006, ARG005
}


def made(constructor: Constructor, arguments: tuple[Any, ...], named: Mapping[str, Any], allocator: object) -> Any:
    """Return what ``constructor`` returns, on memory of ``allocator``; ``None`` is the current one."""
    chosen = _current() if allocator is None else checked(allocator, f"{constructor.__name__}()")
    if chosen is None:
        return constructor(*arguments, **named)
    make = functools.partial(constructor, *arguments, **named)
    number = _firsttouch.slab_axis(chosen)
    if number is not None:
        stated = slabs.expected(constructor, arguments, named, number)
        make = functools.partial(slabs.laid, make, stated, number, chosen)
    own: BaseException | None
    failed = _firsttouch.last_failure()
    _firsttouch.take_error()  # of an earlier request whose caller did not take it
    open_blocks = context.entered()
    before = _firsttouch.enter_named(chosen)
    try:
        return make()
    except MemoryError as error:
        own = error.__cause__ or _firsttouch.take_error()
        if own is None:
            raise explained(error, failed) from error
    finally:
        context.leave_under(before, open_blocks)
    raise own


def _current() -> Allocator | None:
    """Return the current allocator if it is one of firsttouch's; otherwise NumPy's functions need no change."""
    found = _firsttouch.current()
    return None if found == _NUMPYS or _firsttouch.is_foreign(found) else found


def satisfying(constructor: Constructor, arguments: tuple[Any, ...], named: dict[str, Any], allocator: object) -> Any:
    """As `made`, for constructors that may return their argument; one on another allocator's memory is copied."""
    if allocator is None:
        return made(constructor, arguments, named, None)
    chosen = checked(allocator, f"{constructor.__name__}()")
    found = made(constructor, arguments, named, chosen)
    if not isinstance(found, np.ndarray) or _firsttouch.accepts(chosen, found):
        return found
    if _never(named.get("copy")):
        raise ValueError(
            "Unable to avoid copy while creating an array as requested: "
            f"its memory does not come from {chosen!r}.\n"
            "If using `np.array(obj, copy=False)` replace it with `np.asarray(obj)` "
            "to allow a copy when needed (no behavior change in NumPy 1.x)."
        )
    return made(_copied, (found,), {}, chosen)


def _never(copy: object) -> bool:
    """Return whether `copy` forbids one: NumPy takes its truth value."""
    try:
        return copy is not None and not copy
    except ValueError:  # a mode of NumPy's that has none
        return False


def _copied(array: np.ndarray) -> np.ndarray:
    return _numpy_array(array, copy=True, order="K", subok=True)


_numpy_array = np.array


def signature(constructor: Constructor, name: str) -> inspect.Signature:
    """Return NumPy's signature with ``allocator=None`` as its last keyword."""
    text = getattr(constructor, "__text_signature__", None)
    try:
        # Compiling NumPy's own signature takes a fraction of the time of inspect, which counts at every import.
        known = inspect.signature(eval(f"(lambda {text[1:-1]}: ...)") if text else constructor)
    except ValueError:
        known = inspect.signature(_IN_C[name])
    allocator = inspect.Parameter("allocator", inspect.Parameter.KEYWORD_ONLY, default=None)
    return known.replace(parameters=[*known.parameters.values(), allocator])

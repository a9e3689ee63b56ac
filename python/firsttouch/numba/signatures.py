"""The methods of buffers for Numba's type inference."""

from __future__ import annotations

import inspect
from typing import Any

from numba.core import cgutils, errors, types
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.core.typing.templates import AttributeTemplate, bound_function, signature

from firsttouch.numba.kinds import ScratchBufferType, ThreadBuffersType, scratch_buffer, scratch_mark


def _shape(shape: Any) -> None: ...


def _shape_dtype(shape: Any, dtype: Any = None) -> None: ...


def _element(dtype: Any) -> Any:
    """Return the type of an array's elements; without a dtype, NumPy's default."""
    if dtype is None or cgutils.is_nonelike(dtype):
        return types.float64
    if isinstance(dtype, types.Function):
        return {float: types.float64, int: types.intp, bool: types.boolean}.get(dtype.typing_key)
    return parse_dtype(dtype)


def _constructor(name: str) -> Any:
    def resolve(_self: Any, _kind: Any, args: Any, kws: Any) -> Any:
        try:
            given = inspect.signature(_shape_dtype).bind(*args, **kws).arguments
        except TypeError as error:
            raise errors.TypingError(f"ScratchBuffer.{name}(shape, dtype=float64): {error}") from None
        ndim, element = parse_shape(given["shape"]), _element(given.get("dtype"))
        if ndim is None or element is None:
            wanted = "a shape is an int or a tuple of ints, a dtype one that Numba knows"
            raise errors.TypingError(f"ScratchBuffer.{name}{tuple(given.values())}: {wanted}")
        python = inspect.signature(_shape_dtype if "dtype" in given else _shape)
        return signature(types.Array(element, ndim, "C"), *given.values()).replace(pysig=python)

    return bound_function(f"ScratchBuffer.{name}")(resolve)


class BufferMethods(AttributeTemplate):  # type: ignore[misc]
    """The methods of a ScratchBuffer."""

    key = ScratchBufferType

    resolve_empty = _constructor("empty")
    resolve_zeros = _constructor("zeros")

    def _mark(self, _kind: Any, args: Any, kws: Any) -> Any:
        return signature(scratch_mark) if not args and not kws else None

    def _rewind(self, _kind: Any, args: Any, kws: Any) -> Any:
        return signature(types.none, scratch_mark) if args == (scratch_mark,) and not kws else None

    resolve_mark = bound_function("ScratchBuffer.mark")(_mark)
    resolve_rewind = bound_function("ScratchBuffer.rewind")(_rewind)


class BuffersMethods(AttributeTemplate):  # type: ignore[misc]
    """The methods of ThreadBuffers."""

    key = ThreadBuffersType

    def _local(self, _kind: Any, args: Any, kws: Any) -> Any:
        return signature(scratch_buffer) if not args and not kws else None

    resolve_local = bound_function("ThreadBuffers.local")(_local)

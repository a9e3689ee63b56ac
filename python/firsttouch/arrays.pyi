from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from firsttouch._firsttouch import _AnyOrder, _Array, _Order, _Shape
from firsttouch._firsttouch import _Type as _AnyType
from firsttouch.custom import AllocatorLike

__all__ = ["array", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]

_S = TypeVar("_S", bound=np.generic)
_A = TypeVar("_A", bound=np.ndarray[Any, Any])

_Type: TypeAlias = type[_S] | np.dtype[_S]
_Floats: TypeAlias = npt.NDArray[np.float64]

class _Place(TypedDict, total=False):
    device: Literal["cpu"] | None
    allocator: AllocatorLike | None

class _Like(_Place, total=False):
    like: Any

class _Layout(_Place, total=False):
    subok: bool
    shape: _Shape | None

class _Conversion(TypedDict, total=False):
    copy: bool | None
    order: _AnyOrder
    subok: bool
    ndmin: int
    ndmax: int
    like: Any
    allocator: AllocatorLike | None

@overload
def empty(shape: _Shape, dtype: None = None, order: _Order = "C", **more: Unpack[_Like]) -> _Floats: ...
@overload
def empty(shape: _Shape, dtype: _Type[_S], order: _Order = "C", **more: Unpack[_Like]) -> npt.NDArray[_S]: ...
@overload
def empty(shape: _Shape, dtype: _AnyType = None, order: _Order = "C", **more: Unpack[_Like]) -> _Array: ...
@overload
def full(
    shape: _Shape, fill_value: Any, dtype: _Type[_S], order: _Order = "C", **more: Unpack[_Like]
) -> npt.NDArray[_S]: ...
@overload
def full(
    shape: _Shape, fill_value: Any, dtype: _AnyType = None, order: _Order = "C", **more: Unpack[_Like]
) -> _Array: ...
@overload
def empty_like(prototype: _A, /, dtype: None = None, order: _AnyOrder = "K", **more: Unpack[_Place]) -> _A: ...
@overload
def empty_like(
    prototype: object, /, dtype: _Type[_S], order: _AnyOrder = "K", **more: Unpack[_Layout]
) -> npt.NDArray[_S]: ...
@overload
def empty_like(
    prototype: object, /, dtype: _AnyType = None, order: _AnyOrder = "K", **more: Unpack[_Layout]
) -> _Array: ...
@overload
def ones_like(a: _A, dtype: None = None, order: _AnyOrder = "K", **more: Unpack[_Place]) -> _A: ...
@overload
def ones_like(a: object, dtype: _Type[_S], order: _AnyOrder = "K", **more: Unpack[_Layout]) -> npt.NDArray[_S]: ...
@overload
def ones_like(a: object, dtype: _AnyType = None, order: _AnyOrder = "K", **more: Unpack[_Layout]) -> _Array: ...
@overload
def full_like(a: _A, fill_value: Any, dtype: None = None, order: _AnyOrder = "K", **more: Unpack[_Place]) -> _A: ...
@overload
def full_like(
    a: object, fill_value: Any, dtype: _Type[_S], order: _AnyOrder = "K", **more: Unpack[_Layout]
) -> npt.NDArray[_S]: ...
@overload
def full_like(
    a: object, fill_value: Any, dtype: _AnyType = None, order: _AnyOrder = "K", **more: Unpack[_Layout]
) -> _Array: ...
@overload
def array(object: Any, dtype: _Type[_S], **more: Unpack[_Conversion]) -> npt.NDArray[_S]: ...
@overload
def array(object: Any, dtype: _AnyType = None, **more: Unpack[_Conversion]) -> _Array: ...

ones = empty
zeros = empty
zeros_like = ones_like

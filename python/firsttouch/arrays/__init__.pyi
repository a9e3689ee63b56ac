from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from firsttouch.custom import AllocatorLike

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "fromiter",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

METHODS: dict[str, Callable[..., Any]]

_S = TypeVar("_S", bound=np.generic)
_A = TypeVar("_A", bound=np.ndarray[Any, Any])

_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Type: TypeAlias = type[_S] | np.dtype[_S]
_Order: TypeAlias = Literal["C", "F"] | None
_AnyOrder: TypeAlias = Literal["K", "A", "C", "F"] | None
_Device: TypeAlias = Literal["cpu"] | None
_Array: TypeAlias = npt.NDArray[Any]
_Floats: TypeAlias = npt.NDArray[np.float64]
_Place: TypeAlias = AllocatorLike | None

@overload
def empty(
    shape: _Shape,
    dtype: None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Floats: ...
@overload
def empty(
    shape: _Shape,
    dtype: _Type[_S],
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def empty(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def zeros(
    shape: _Shape,
    dtype: None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Floats: ...
@overload
def zeros(
    shape: _Shape,
    dtype: _Type[_S],
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def zeros(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def ones(
    shape: _Shape,
    dtype: None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Floats: ...
@overload
def ones(
    shape: _Shape,
    dtype: _Type[_S],
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def ones(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def full(
    shape: _Shape,
    fill_value: Any,
    dtype: _Type[_S],
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def full(
    shape: _Shape,
    fill_value: _S,
    dtype: None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def full(
    shape: _Shape,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def empty_like(
    prototype: _A,
    /,
    dtype: None = None,
    order: _AnyOrder = "K",
    subok: Literal[True] = True,
    shape: None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _A: ...
@overload
def empty_like(
    prototype: Any,
    /,
    dtype: _Type[_S],
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def empty_like(
    prototype: Any,
    /,
    dtype: npt.DTypeLike | None = None,
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def zeros_like(
    a: _A,
    dtype: None = None,
    order: _AnyOrder = "K",
    subok: Literal[True] = True,
    shape: None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _A: ...
@overload
def zeros_like(
    a: Any,
    dtype: _Type[_S],
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def zeros_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def ones_like(
    a: _A,
    dtype: None = None,
    order: _AnyOrder = "K",
    subok: Literal[True] = True,
    shape: None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _A: ...
@overload
def ones_like(
    a: Any,
    dtype: _Type[_S],
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def ones_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def full_like(
    a: _A,
    fill_value: Any,
    dtype: None = None,
    order: _AnyOrder = "K",
    subok: Literal[True] = True,
    shape: None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _A: ...
@overload
def full_like(
    a: Any,
    fill_value: Any,
    dtype: _Type[_S],
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def full_like(
    a: Any,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: _AnyOrder = "K",
    subok: bool = True,
    shape: _Shape | None = None,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def array(
    object: npt.NDArray[_S],
    dtype: None = None,
    *,
    copy: bool | None = True,
    order: _AnyOrder = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def array(
    object: Any,
    dtype: _Type[_S],
    *,
    copy: bool | None = True,
    order: _AnyOrder = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def array(
    object: Any,
    dtype: npt.DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: _AnyOrder = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def asarray(
    a: npt.NDArray[_S],
    dtype: None = None,
    order: _AnyOrder = None,
    *,
    device: _Device = None,
    copy: bool | None = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def asarray(
    a: Any,
    dtype: _Type[_S],
    order: _AnyOrder = None,
    *,
    device: _Device = None,
    copy: bool | None = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def asarray(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _AnyOrder = None,
    *,
    device: _Device = None,
    copy: bool | None = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def copy(a: _A, order: _AnyOrder = "K", *, subok: Literal[True], allocator: _Place = None) -> _A: ...
@overload
def copy(
    a: npt.NDArray[_S], order: _AnyOrder = "K", subok: bool = False, *, allocator: _Place = None
) -> npt.NDArray[_S]: ...
@overload
def copy(a: Any, order: _AnyOrder = "K", subok: bool = False, *, allocator: _Place = None) -> _Array: ...
@overload
def arange(
    start_or_stop: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: _Type[_S],
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def arange(
    start_or_stop: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: npt.DTypeLike | None = None,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def linspace(
    start: Any,
    stop: Any,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: npt.DTypeLike | None = None,
    axis: SupportsIndex = 0,
    *,
    device: _Device = None,
    allocator: _Place = None,
) -> _Array: ...
@overload
def linspace(
    start: Any,
    stop: Any,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: npt.DTypeLike | None = None,
    axis: SupportsIndex = 0,
    device: _Device = None,
    allocator: _Place = None,
) -> tuple[_Array, Any]: ...
@overload
def fromiter(
    iter: Iterable[Any], dtype: _Type[_S], count: SupportsIndex = -1, *, like: Any = None, allocator: _Place = None
) -> npt.NDArray[_S]: ...
@overload
def fromiter(
    iter: Iterable[Any], dtype: npt.DTypeLike, count: SupportsIndex = -1, *, like: Any = None, allocator: _Place = None
) -> _Array: ...
@overload
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: type[float] = ...,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Floats: ...
@overload
def eye(
    N: int,
    M: int | None,
    k: int,
    dtype: _Type[_S],
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    *,
    dtype: _Type[_S],
    order: _Order = "C",
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> npt.NDArray[_S]: ...
@overload
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: npt.DTypeLike = ...,
    order: _Order = "C",
    *,
    device: _Device = None,
    like: Any = None,
    allocator: _Place = None,
) -> _Array: ...

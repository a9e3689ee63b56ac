import typing

import numpy as np
import numpy.typing as npt

__all__ = [
    "BACKEND",
    "Allocator",
    "UnsupportedError",
    "__version__",
    "accepts",
    "aligned",
    "calloc",
    "current",
    "default_pool",
    "deliver",
    "empty",
    "enter",
    "enter_direct",
    "get_allocator",
    "install",
    "is_installed",
    "last_failure",
    "leave",
    "malloc",
    "numpy_default",
    "own",
    "pages",
    "parse_size",
    "pool",
    "resume_later",
    "set_long",
    "set_small_limit",
    "stats",
    "take_error",
    "trim",
    "uninstall",
    "watch_faults",
    "zeros",
]

_Shape: typing.TypeAlias = typing.SupportsIndex | typing.Sequence[typing.SupportsIndex]
_Order: typing.TypeAlias = typing.Literal["C", "F"]

__version__: str
BACKEND: bool

class UnsupportedError(RuntimeError): ...

@typing.final
class Allocator:
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def empty(
        self,
        shape: _Shape,
        dtype: npt.DTypeLike | None = None,
        order: _Order | None = None,
        *,
        device: object = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def zeros(
        self,
        shape: _Shape,
        dtype: npt.DTypeLike | None = None,
        order: _Order | None = None,
        *,
        device: object = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...

def parse_size(text: str) -> int: ...
def resume_later() -> None: ...
def pool(
    upstream: Allocator | None = None,
    *,
    max_idle: int | str | None = None,
    decay: float | None = None,
    never: bool = False,
) -> Allocator: ...
def pages(huge: object) -> Allocator: ...
def malloc() -> Allocator: ...
def calloc() -> Allocator: ...
def aligned(alignment: int | str) -> Allocator: ...
def own(candidate: object) -> Allocator: ...
def numpy_default() -> Allocator: ...
def default_pool() -> Allocator: ...
def install(allocator: Allocator | None = None) -> None: ...
def uninstall() -> None: ...
def is_installed() -> bool: ...
def set_small_limit(nbytes: int) -> None: ...
def enter(allocator: Allocator) -> object: ...
def enter_direct(allocator: Allocator) -> object: ...
def leave(before: object) -> None: ...
def current() -> Allocator: ...
def accepts(allocator: Allocator, array: np.ndarray) -> bool: ...
def empty(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    order: _Order | None = None,
    *,
    device: object = None,
    like: object = None,
    allocator: object = None,
) -> npt.NDArray[typing.Any]: ...
def zeros(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    order: _Order | None = None,
    *,
    device: object = None,
    like: object = None,
    allocator: object = None,
) -> npt.NDArray[typing.Any]: ...
def set_long(empty: typing.Callable[..., typing.Any], zeros: typing.Callable[..., typing.Any]) -> None: ...
def take_error() -> BaseException | None: ...
def deliver() -> None: ...
def get_allocator(array: np.ndarray | None = None) -> Allocator | None: ...
def stats(allocator: Allocator | None = None) -> dict[str, int]: ...
def trim(allocator: Allocator | None = None) -> int: ...
def last_failure() -> tuple[int, str, str] | None: ...
def watch_faults(file: int) -> None: ...

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
    "filled",
    "from_functions",
    "get_allocator",
    "guarded",
    "inspect",
    "install",
    "is_installed",
    "jemalloc",
    "last_failure",
    "leave",
    "limited",
    "living",
    "malloc",
    "mimalloc",
    "numpy_default",
    "overruns",
    "own",
    "pagemap",
    "pages",
    "parse_size",
    "pool",
    "refuse_sources",
    "resume_later",
    "set_long",
    "set_small_limit",
    "stats",
    "take_error",
    "tally",
    "tracked",
    "trim",
    "uninstall",
    "upstream",
    "watch_faults",
    "zeros",
]

_Shape: typing.TypeAlias = typing.SupportsIndex | typing.Sequence[typing.SupportsIndex]
_Order: typing.TypeAlias = typing.Literal["C", "F"]
_AnyOrder: typing.TypeAlias = typing.Literal["K", "A", "C", "F"]

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
        order: _Order | None = "C",
        *,
        device: object = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def zeros(
        self,
        shape: _Shape,
        dtype: npt.DTypeLike | None = None,
        order: _Order | None = "C",
        *,
        device: object = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def ones(
        self,
        shape: _Shape,
        dtype: npt.DTypeLike | None = None,
        order: _Order | None = "C",
        *,
        device: object = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def full(
        self,
        shape: _Shape,
        fill_value: typing.Any,
        dtype: npt.DTypeLike | None = None,
        order: _Order | None = "C",
        *,
        device: object = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def empty_like(
        self,
        prototype: typing.Any,
        /,
        dtype: npt.DTypeLike | None = None,
        order: _AnyOrder | None = "K",
        subok: bool = True,
        shape: _Shape | None = None,
        *,
        device: object = None,
    ) -> typing.Any: ...
    def zeros_like(
        self,
        a: typing.Any,
        dtype: npt.DTypeLike | None = None,
        order: _AnyOrder | None = "K",
        subok: bool = True,
        shape: _Shape | None = None,
        *,
        device: object = None,
    ) -> typing.Any: ...
    def ones_like(
        self,
        a: typing.Any,
        dtype: npt.DTypeLike | None = None,
        order: _AnyOrder | None = "K",
        subok: bool = True,
        shape: _Shape | None = None,
        *,
        device: object = None,
    ) -> typing.Any: ...
    def full_like(
        self,
        a: typing.Any,
        fill_value: typing.Any,
        dtype: npt.DTypeLike | None = None,
        order: _AnyOrder | None = "K",
        subok: bool = True,
        shape: _Shape | None = None,
        *,
        device: object = None,
    ) -> typing.Any: ...
    def array(
        self,
        object: typing.Any,
        dtype: npt.DTypeLike | None = None,
        *,
        copy: bool | None = True,
        order: _AnyOrder | None = "K",
        subok: bool = False,
        ndmin: int = 0,
        ndmax: int = 0,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def asarray(
        self,
        a: typing.Any,
        dtype: npt.DTypeLike | None = None,
        order: _AnyOrder | None = None,
        *,
        device: object = None,
        copy: bool | None = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def copy(self, a: typing.Any, order: _AnyOrder | None = "K", subok: bool = False) -> npt.NDArray[typing.Any]: ...
    def arange(
        self,
        start_or_stop: typing.Any,
        /,
        stop: typing.Any = None,
        step: typing.Any = 1,
        *,
        dtype: npt.DTypeLike | None = None,
        device: object = None,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def linspace(
        self,
        start: typing.Any,
        stop: typing.Any,
        num: typing.SupportsIndex = 50,
        endpoint: bool = True,
        retstep: bool = False,
        dtype: npt.DTypeLike | None = None,
        axis: typing.SupportsIndex = 0,
        *,
        device: object = None,
    ) -> typing.Any: ...
    def fromiter(
        self,
        iter: typing.Iterable[typing.Any],
        dtype: npt.DTypeLike,
        count: typing.SupportsIndex = -1,
        *,
        like: object = None,
    ) -> npt.NDArray[typing.Any]: ...
    def eye(
        self,
        N: int,
        M: int | None = None,
        k: int = 0,
        dtype: npt.DTypeLike = ...,
        order: _Order | None = "C",
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
    order: _Order | None = "C",
    *,
    device: object = None,
    like: object = None,
    allocator: object = None,
) -> npt.NDArray[typing.Any]: ...
def zeros(
    shape: _Shape,
    dtype: npt.DTypeLike | None = None,
    order: _Order | None = "C",
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
def tracked(upstream: Allocator, lines: bool) -> Allocator: ...
def limited(upstream: Allocator, budget: int | str) -> Allocator: ...
def guarded(upstream: Allocator, side: str, keep: int | str) -> Allocator: ...
def filled(upstream: Allocator, on_allocate: int | None, on_free: int | None) -> Allocator: ...
def mimalloc() -> Allocator: ...
def jemalloc() -> Allocator: ...
def from_functions(malloc: int, calloc: int | None, realloc: int | None, free: int, context: int) -> Allocator: ...
def living(allocator: Allocator) -> list[tuple[int, int, str | None, int]]: ...
def tally(allocator: Allocator) -> dict[str, typing.Any]: ...
def overruns(allocator: Allocator) -> list[tuple[int, int, int]]: ...
def upstream(allocator: Allocator) -> Allocator | None: ...
def inspect(array: np.ndarray) -> dict[str, typing.Any]: ...
def pagemap(
    array: np.ndarray, nodes: bool, function: str
) -> tuple[bytearray, bytearray, bytearray, bytearray, int]: ...
def refuse_sources(names: list[str]) -> None: ...

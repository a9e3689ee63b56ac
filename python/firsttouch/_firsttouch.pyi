import collections.abc
import typing

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from firsttouch.buffers.kinds import OwnScratch

__all__ = [
    "BACKEND",
    "GAUGE_LEAST",
    "Allocator",
    "Buffer",
    "FixedBuffer",
    "GaugeRegion",
    "JitBuffers",
    "Mark",
    "Scope",
    "ScratchBuffer",
    "SharedMapping",
    "ThreadPlace",
    "UnsupportedError",
    "__version__",
    "accepts",
    "aligned",
    "calloc",
    "collapse_range",
    "cool",
    "current",
    "current_node",
    "default_pool",
    "deliver",
    "did_you_mean",
    "empty",
    "enter",
    "enter_direct",
    "evaluate_expression",
    "expect_axis",
    "fail_allocation",
    "filled",
    "from_functions",
    "get_allocator",
    "guarded",
    "has_expression",
    "highest_node",
    "home_buffer",
    "home_enter",
    "home_kinds",
    "home_leave",
    "inspect",
    "install",
    "is_foreign",
    "is_installed",
    "is_tracked",
    "jemalloc",
    "jit_failure",
    "jit_setup",
    "last_failure",
    "leave",
    "level",
    "limited",
    "living",
    "malloc",
    "migrate_range",
    "mimalloc",
    "nodes_of_range",
    "numa_nodes",
    "numpy_default",
    "overruns",
    "own",
    "own_buffer",
    "page_size_name",
    "pagemap",
    "pages",
    "parse_size",
    "placed_pages",
    "policy_name",
    "policy_of",
    "pool",
    "receipt_of",
    "receipt_sums",
    "refuse_sources",
    "register",
    "reserve_used",
    "resume_later",
    "run_on_node",
    "scratch",
    "scratch_from_table",
    "scratch_turns",
    "set_bar",
    "set_memory_bound",
    "set_small_limit",
    "shared_arrived",
    "shared_wait_until_opened",
    "shrink_slots",
    "slab_axis",
    "stats",
    "take_error",
    "tally",
    "touch_range",
    "trace_begin",
    "trace_end",
    "trace_is_on",
    "trace_replay",
    "trace_summary",
    "trace_survey",
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

_Size: typing.TypeAlias = typing.SupportsIndex | str
_P = typing.ParamSpec("_P")
_R = typing.TypeVar("_R")
_P2 = typing.ParamSpec("_P2")
_R2 = typing.TypeVar("_R2")

__version__: str
BACKEND: bool
GAUGE_LEAST: int

class UnsupportedError(RuntimeError): ...

@disjoint_base
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

@typing.final
class Mark: ...

@disjoint_base
class Buffer(Allocator):
    @property
    def used(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def peak(self) -> int: ...
    def reset(self) -> None: ...
    def mark(self) -> Mark: ...
    def rewind(self, mark: Mark) -> None: ...
    def alloc(self, nbytes: _Size, alignment: _Size = 64) -> memoryview: ...

@typing.final
class ScratchBuffer(Buffer):
    def __new__(
        cls,
        chunk_size: _Size = "1 MiB",
        upstream: object = None,
        limit: _Size | None = None,
        debug: bool = False,
        *,
        numa: object = None,
    ) -> typing.Self: ...

@typing.final
class FixedBuffer(Buffer):
    def __new__(cls, nbytes_or_array: object = "1 MiB", debug: bool = False, *, numa: object = None) -> typing.Self: ...

@typing.final
class Scope(Allocator):
    @property
    def buffer(self) -> Buffer: ...
    @property
    def is_open(self) -> bool: ...
    def alloc(self, nbytes: _Size, alignment: _Size = 64) -> memoryview: ...

class _Undecorated: ...

@typing.final
class scratch(typing.Generic[_P, _R]):
    __name__: str
    __qualname__: str
    __wrapped__: typing.Callable[_P, _R]
    @typing.overload
    def __new__(
        cls,
        buffer_or_function: Buffer | OwnScratch | None = None,
        /,
        *,
        result: typing.Literal["copy", "keep"] = "copy",
        escape: typing.Literal["keep", "warn", "raise"] = "keep",
        debug: bool = False,
    ) -> scratch[[_Undecorated], _Undecorated]: ...
    @typing.overload
    def __new__(
        cls,
        buffer_or_function: typing.Callable[_P, _R],
        /,
        *,
        result: typing.Literal["copy", "keep"] = "copy",
        escape: typing.Literal["keep", "warn", "raise"] = "keep",
        debug: bool = False,
    ) -> scratch[_P, _R]: ...
    def __enter__(self) -> Scope: ...
    def __exit__(self, kind: object, error: object, traceback: object, /) -> typing.Literal[False]: ...
    @typing.overload
    def __call__(
        self: scratch[[_Undecorated], _Undecorated], function: typing.Callable[_P2, _R2], /
    ) -> scratch[_P2, _R2]: ...
    @typing.overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @typing.overload
    def __get__(self, instance: None, owner: type | None = None, /) -> typing.Self: ...
    @typing.overload
    def __get__(self, instance: object, owner: type | None = None, /) -> typing.Callable[..., _R]: ...

def scratch_from_table(address: int) -> Buffer: ...
def own_buffer(object: object) -> Buffer: ...
def home_buffer() -> Buffer: ...
def home_kinds() -> dict[typing.Hashable, Buffer]: ...
def home_enter(buffer: Buffer) -> object: ...
def home_leave(home: object, buffer: Buffer) -> None: ...
def parse_size(text: str) -> int: ...
def evaluate_expression(text: str, make: collections.abc.Callable[..., typing.Any]) -> typing.Any: ...
def did_you_mean(word: str, known: collections.abc.Sequence[str]) -> str: ...
def cool() -> None: ...
def resume_later() -> None: ...
def fail_allocation(n: int, onwards: bool) -> bool: ...
def reserve_used() -> int: ...

_Handle: typing.TypeAlias = tuple[str, int, int, int, int, tuple[str, int, int]]

@typing.final
class SharedMapping:
    def __new__(cls, nbytes: int, pages: Allocator) -> SharedMapping: ...
    @staticmethod
    def open(words: _Handle, write: bool) -> tuple[SharedMapping | None, str, int]: ...
    def handle(self) -> _Handle: ...
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def writeable(self) -> bool: ...
    @property
    def token(self) -> str: ...
    def receipt(self) -> dict[str, typing.Any] | None: ...
    @property
    def __array_interface__(self) -> dict[str, typing.Any]: ...

def shared_arrived(words: _Handle) -> None: ...
def shared_wait_until_opened(seconds: float) -> bool: ...

@typing.final
class GaugeRegion:
    def __new__(cls, only_this_thread: bool, cold: list[Allocator]) -> GaugeRegion: ...
    def look(self) -> dict[str, int | None] | None: ...
    def close(self) -> dict[str, int | None] | None: ...

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
def set_memory_bound(nbytes: int | None) -> None: ...
def set_small_limit(nbytes: int) -> None: ...
def shrink_slots(count: int) -> None: ...
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
def register(**functions: typing.Any) -> None: ...
def take_error() -> BaseException | None: ...
def deliver() -> None: ...
def get_allocator(array: np.ndarray | None = None) -> Allocator | None: ...
def stats(allocator: Allocator | None = None) -> dict[str, int]: ...
def trim(allocator: Allocator | None = None) -> int: ...
def last_failure() -> tuple[int, str, str] | None: ...
def watch_faults(file: int) -> None: ...
def scratch_turns(way: str, items: int, count: int) -> tuple[float, int]: ...
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
def level(allocator: Allocator) -> str: ...
def is_tracked(allocator: Allocator) -> bool: ...
def is_foreign(allocator: Allocator) -> bool: ...
def has_expression(allocator: Allocator) -> bool: ...
def page_size_name(text: str) -> str: ...
def policy_name(text: str) -> str: ...
def policy_of(allocator: Allocator) -> str | None: ...
def slab_axis(allocator: Allocator) -> int | None: ...
def expect_axis(expected: tuple[int, int, int] | None = None) -> None: ...
def set_bar(bar: typing.Callable[[int], typing.Callable[[int], None]]) -> None: ...
def placed_pages(
    huge: list[str], populate: int, lock: bool, numa: str | None, strict: bool, progress: bool
) -> Allocator: ...
def receipt_of(allocator: Allocator, address: int) -> dict[str, typing.Any] | None: ...
def receipt_sums() -> list[tuple[str, str | None, int, int]]: ...
def touch_range(
    address: int,
    nbytes: int,
    write: bool,
    threads: int | None,
    slabs: bool,
    progress: typing.Callable[[int], None] | None,
) -> tuple[int, bool]: ...
def collapse_range(address: int, nbytes: int) -> tuple[int, str | None]: ...
def migrate_range(
    address: int,
    nbytes: int,
    numa: str,
    axis: tuple[int, int] | None = None,
    allocator: Allocator | None = None,
) -> tuple[int, int, int, int, str | None]: ...
def nodes_of_range(address: int, nbytes: int) -> list[int]: ...
def numa_nodes() -> list[tuple[int, list[int], tuple[int, int, int] | None, list[int]]]: ...
def current_node() -> int: ...
def highest_node() -> int: ...
def run_on_node(node: int) -> ThreadPlace: ...

@typing.final
class ThreadPlace:
    @property
    def why_not(self) -> str | None: ...
    def restore(self) -> None: ...

@disjoint_base
class JitBuffers:
    def __new__(cls, buffers: list[Buffer]) -> typing.Self: ...
    @property
    def buffers(self) -> list[Buffer]: ...

def jit_setup(get_api: int) -> dict[str, int]: ...
def jit_failure() -> tuple[str, tuple[int, int] | None]: ...
def inspect(array: np.ndarray) -> dict[str, typing.Any]: ...
def pagemap(
    array: np.ndarray, nodes: bool, function: str
) -> tuple[bytearray, bytearray, bytearray, bytearray, int]: ...
def refuse_sources(names: list[str]) -> None: ...
def trace_begin(file: str, facts: list[tuple[str, str]]) -> None: ...
def trace_end(facts: list[tuple[str, str]]) -> tuple[int, int, int] | None: ...
def trace_is_on() -> bool: ...
def trace_survey(file: str, incomplete: bool) -> dict[str, typing.Any]: ...
def trace_replay(
    file: str,
    allocator: Allocator | None,
    touch: str,
    threads: bool,
    incomplete: bool,
    ready: typing.Callable[[], None],
) -> dict[str, typing.Any]: ...
def trace_summary(file: str, incomplete: bool, huge_from: int) -> tuple[list[dict[str, typing.Any]], int, int]: ...

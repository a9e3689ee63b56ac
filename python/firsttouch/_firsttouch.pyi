import collections.abc
import types
import typing

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__all__ = [
    "BACKEND",
    "Allocator",
    "Buffer",
    "FixedBuffer",
    "NumbaBuffers",
    "ProfileRegion",
    "ReportStart",
    "Scope",
    "ScratchBuffer",
    "SharedMapping",
    "ThreadPlace",
    "UnsupportedError",
    "__version__",
    "accepts",
    "check_expression",
    "collapse_range",
    "current",
    "current_node",
    "declared",
    "default_pool",
    "deliver",
    "did_you_mean",
    "empty",
    "enter",
    "enter_named",
    "evaluate_expression",
    "expect_axis",
    "fail_allocation",
    "fail_calls",
    "from_functions",
    "get_allocator",
    "has_expression",
    "highest_node",
    "home",
    "home_buffer",
    "home_enter",
    "home_leave",
    "inspect",
    "install",
    "is_foreign",
    "is_installed",
    "is_tracked",
    "last_failure",
    "leave",
    "level",
    "living",
    "migrate_range",
    "nodes_of_range",
    "numa_nodes",
    "numba_failure",
    "numba_setup",
    "numpy_default",
    "origin_of",
    "overruns",
    "own",
    "pagemap",
    "parse_size",
    "placed_pages",
    "policy_argument",
    "receipt_of",
    "receipt_sums",
    "recycled_upstream",
    "register",
    "report",
    "reserve_used",
    "run_on_node",
    "scratch",
    "set_bar",
    "set_memory_bound",
    "set_small_limit",
    "shared_arrived",
    "shared_wait_until_opened",
    "shares_preloaded_pool",
    "shrink_slots",
    "size_argument",
    "slab_axis",
    "stats",
    "take_error",
    "tally",
    "touch_range",
    "trace_begin",
    "trace_end",
    "trace_is_on",
    "trace_summary",
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

_allocators: types.ModuleType

class UnsupportedError(RuntimeError):
    """Something is not supported by this platform, kernel, NumPy or build.

    See Also
    --------
    firsttouch.install : Raises it where NumPy's memory handler is not as expected.

    """

@disjoint_base
class Allocator:
    """A source of memory for arrays, with NumPy's constructors as methods; ``repr`` is the expression that makes it.

    An allocator may be used from any thread. Two are equal if they allocate from the same memory.

    See Also
    --------
    firsttouch.allocators : The functions that make allocators.
    firsttouch.use : Use one for a block of code.
    firsttouch.install : Use one for the whole process.

    Examples
    --------
    >>> allocator = ft.pages(huge="thp")
    >>> allocator
    pages(huge='thp')
    >>> a = allocator.full((2, 2), 0.5)
    >>> ft.get_allocator(a) == allocator
    True

    """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
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
    def empty(
        self,
        shape: _Shape,
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
    def ones_like(
        self,
        a: typing.Any,
        dtype: npt.DTypeLike | None = None,
        order: _AnyOrder | None = "K",
        subok: bool = True,
        shape: _Shape | None = None,
        *,
        device: object = None,
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
    def zeros_like(
        self,
        a: typing.Any,
        dtype: npt.DTypeLike | None = None,
        order: _AnyOrder | None = "K",
        subok: bool = True,
        shape: _Shape | None = None,
        *,
        device: object = None,
    ) -> npt.NDArray[typing.Any]: ...

@disjoint_base
class Buffer(Allocator):
    """Scratch memory: the base class of all buffers.

    Scopes take their memory from a buffer, and so do its own constructors, outside all scopes. Several threads may use
    one, but in turn: give each its own where that matters.

    See Also
    --------
    ScratchBuffer : A buffer that grows.
    FixedBuffer : A buffer of one size.
    firsttouch.scratch : Opens a scope on a buffer.

    """

    @property
    def used(self) -> int:
        """Bytes of live blocks in the buffer's own memory."""
    @property
    def capacity(self) -> int:
        """Bytes of the buffer's own memory, in use or not."""
    @property
    def peak(self) -> int:
        """Peak of `used` since the buffer was made or reset."""
    def reset(self) -> None:
        """Release all memory that no live array needs, and forget the peak."""
    def alloc(self, nbytes: _Size, alignment: _Size = 64) -> memoryview:
        """Allocate raw memory.

        Parameters
        ----------
        nbytes : int or str
            Size in bytes. Text such as ``"64 KiB"`` is accepted.
        alignment : int or str, optional
            Alignment in bytes, a power of two up to 1 GiB.

        Returns
        -------
        memoryview
            Writable bytes, which the view keeps alive.

        Raises
        ------
        ValueError
            If `alignment` is not such a power of two.
        MemoryError
            If the buffer is full.

        """

@typing.final
class ScratchBuffer(Buffer):
    """Scratch memory that grows by chunks.

    Parameters
    ----------
    chunk_size : int or str, optional
        Bytes per chunk. Requests of an eighth of it or more go to `upstream`.
    upstream : AllocatorLike, optional
        Where chunks come from. The default is the process's own pool.
    limit : int or str, optional
        Bytes that the buffer may hold, large arrays included. The default is no limit.
    debug : bool, optional
        Whether freed memory is filled with a pattern and checked for writes, and the line that made each array is
        recorded.
    numa : int or str, optional
        Instead of an upstream: a pool on a node or by a policy, as for :func:`firsttouch.pool`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above, or both `upstream` and `numa` are given.

    See Also
    --------
    FixedBuffer : A buffer that does not grow.
    scratch : Open a scope on a buffer.

    Notes
    -----
    Allocating bumps a pointer. A chunk whose arrays are all gone starts again; one with arrays that outlive their scope
    is theirs until they are gone, too.

    Examples
    --------
    >>> buffer = ft.ScratchBuffer("1 MiB", limit="64 MiB")
    >>> with ft.scratch(buffer) as s:
    ...     a = s.zeros(1000)
    >>> buffer.used
    8000
    >>> del a
    >>> buffer.used
    0

    """

    def __new__(
        cls,
        chunk_size: _Size = "128 KiB",
        upstream: object = None,
        limit: _Size | None = None,
        debug: bool = False,
        *,
        numa: object = None,
    ) -> typing.Self: ...

@typing.final
class FixedBuffer(Buffer):
    """Scratch memory of one size; what does not fit raises :exc:`MemoryError`.

    Parameters
    ----------
    nbytes_or_array : int, str or buffer, optional
        Size in bytes, or contiguous writable memory to use: an array, a memory map, shared memory. It is kept alive
        until the last array on it is gone.
    debug : bool, optional
        As for :class:`ScratchBuffer`.
    numa : int or str, optional
        Where memory that is not given comes from, as for :func:`firsttouch.pool`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above, the memory is used by another buffer, or both memory and `numa` are
        given.

    See Also
    --------
    ScratchBuffer : A buffer that grows.

    Notes
    -----
    Its memory is bounded whatever the program does. In a forked child, a buffer on shared memory is closed.

    Examples
    --------
    >>> buffer = ft.FixedBuffer(np.empty(4096, "u1"))
    >>> with ft.scratch(buffer) as s:
    ...     try:
    ...         s.zeros(1000)
    ...     except MemoryError as error:
    ...         print(error)
    Unable to allocate 7.81 KiB ...

    """

    def __new__(cls, nbytes_or_array: object = "1 MiB", debug: bool = False, *, numa: object = None) -> typing.Self: ...

@typing.final
class Scope(Allocator):
    """Scratch memory for the duration of a block; arrays made in it stay valid for as long as they live.

    See Also
    --------
    firsttouch.scratch : Entering it returns a scope.

    """

    @property
    def buffer(self) -> Buffer:
        """Buffer that the scope takes memory from."""
    @property
    def is_open(self) -> bool:
        """Whether the block is still running."""
    def alloc(self, nbytes: _Size, alignment: _Size = 64) -> memoryview:
        """Allocate raw memory.

        Parameters
        ----------
        nbytes : int or str
            Size in bytes. Text such as ``"64 KiB"`` is accepted.
        alignment : int or str, optional
            Alignment in bytes, a power of two up to 1 GiB.

        Returns
        -------
        memoryview
            Writable bytes, which the view keeps alive.

        Raises
        ------
        ValueError
            If `alignment` is not such a power of two.
        MemoryError
            If the buffer is full.

        """

class _Undecorated: ...

@typing.final
class scratch(typing.Generic[_P, _R]):
    """Use scratch memory for a block of code, or for each call of a function.

    ``with scratch() as s:`` serves the arrays of 1 KiB and more that NumPy makes in the block, and all that `s` makes.
    ``@scratch`` gives each call of a function a scope of its own.

    Parameters
    ----------
    buffer_or_function : Buffer or callable, optional
        Buffer to use, or the function to decorate. The default buffer is that of this thread or asyncio task.
    result : {"copy", "keep"}, optional
        Of a decorated function: whether arrays that it returns are copied to ordinary memory, or left where they are.
    escape : {"keep", "warn", "raise"}, optional
        Of a decorated function: what happens if other arrays outlive the call. ``"warn"`` gives a
        :exc:`firsttouch.buffers.EscapeWarning`, ``"raise"`` a :exc:`firsttouch.buffers.EscapeError`.
    debug : bool, optional
        Whether the scope is on a buffer that checks for writes to freed memory and records the line that made each
        array.

    Raises
    ------
    TypeError
        If an argument is not one of the above, or the function is a generator or coroutine function.
    ValueError
        If `result` or `escape` is not one of these words.

    See Also
    --------
    ScratchBuffer, FixedBuffer : The buffers.
    default_buffer : The buffer of this thread or task.

    Notes
    -----
    Allocating bumps a pointer. Arrays of an eighth of a chunk and more (16 KiB) come from the pool, which is as fast
    for them. An array that outlives the scope is never taken away: its chunk is not used again until it dies.

    Examples
    --------
    >>> x = np.linspace(0, 1, 1000)
    >>> with ft.scratch() as s:
    ...     work = s.empty(1000)
    ...     y = np.sqrt(x, out=work) + 1

    >>> @ft.scratch
    ... def smooth(x):
    ...     left, right = np.roll(x, 1), np.roll(x, -1)
    ...     return (left + 2 * x + right) / 4
    >>> smooth(x).shape
    (1000,)

    """

    __name__: str
    __qualname__: str
    __wrapped__: typing.Callable[_P, _R]
    @typing.overload
    def __new__(
        cls,
        buffer_or_function: Buffer | None = None,
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

def home() -> object: ...
def home_buffer(fixed: bool) -> Buffer: ...
def home_enter(buffer: Buffer) -> object: ...
def home_leave(home: object, buffer: Buffer) -> None: ...
def parse_size(text: str) -> int: ...
def declared() -> list[tuple[str, bool, str, str, str]]: ...
def evaluate_expression(text: str, others: dict[str, collections.abc.Callable[..., Allocator]]) -> Allocator: ...
def check_expression(text: str, others: collections.abc.Sequence[str]) -> list[str]: ...
def size_argument(name: str, value: object) -> int: ...
def recycled_upstream(caller: str, upstream: object, numa: object) -> Allocator | None: ...
def did_you_mean(word: str, known: collections.abc.Sequence[str]) -> str: ...
def fail_allocation(n: int, onwards: bool) -> bool: ...
def fail_calls(names: collections.abc.Sequence[str], passing: int = 0, failing: int = ...) -> None: ...
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
class ReportStart:
    def __init__(self, counted: list[float]) -> None: ...
    @staticmethod
    def now(allocator: Allocator | None = None) -> ReportStart: ...

class ProfileRegion:
    def __new__(cls, only_this_thread: bool, cold: list[Allocator]) -> ProfileRegion: ...
    def look(self) -> dict[str, int | None] | None: ...
    def close(self) -> dict[str, int | None] | None: ...

def own(candidate: object) -> Allocator: ...
def numpy_default() -> Allocator: ...
def default_pool() -> Allocator: ...
def shares_preloaded_pool() -> bool: ...
def report(
    facts: dict[str, typing.Any], start: ReportStart, pooled: bool, allocator: Allocator | None = None
) -> tuple[str, str]: ...
def install(allocator: Allocator | None = None) -> None: ...
def uninstall() -> None: ...
def is_installed() -> bool: ...
def set_memory_bound(nbytes: int | None) -> None: ...
def set_small_limit(nbytes: int) -> None: ...
def shrink_slots(count: int) -> None: ...
def enter(allocator: Allocator) -> object: ...
def enter_named(allocator: Allocator) -> object: ...
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
def from_functions(
    *,
    malloc: int,
    free: int,
    calloc: int | None = None,
    realloc: int | None = None,
    context: int | None = None,
) -> Allocator: ...
def living(allocator: Allocator) -> list[tuple[int, int, str | None, int]]: ...
def tally(allocator: Allocator) -> dict[str, typing.Any]: ...
def overruns(allocator: Allocator) -> list[tuple[int, int, int]]: ...
def upstream(allocator: Allocator) -> Allocator | None: ...
def level(allocator: Allocator) -> str: ...
def is_tracked(allocator: Allocator) -> bool: ...
def is_foreign(allocator: Allocator) -> bool: ...
def has_expression(allocator: Allocator) -> bool: ...
def policy_argument(name: str, value: object) -> str: ...
def slab_axis(allocator: Allocator) -> int | None: ...
def expect_axis(expected: tuple[int, int, int] | None = None) -> None: ...
def set_bar(bar: typing.Callable[[int], typing.Callable[[int], None]]) -> None: ...
def placed_pages(**options: object) -> Allocator: ...
def receipt_of(allocator: Allocator, address: int) -> dict[str, typing.Any] | None: ...
def origin_of(address: int) -> tuple[int, int, bool, str] | None: ...
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
def current_node() -> int:
    """Return the NUMA node of the processor that the current thread runs on.

    Returns
    -------
    int

    See Also
    --------
    run_on : Run on another node.
    topology : All nodes.

    Examples
    --------
    >>> ft.placement.current_node() <= ft.placement.highest_node()
    True

    """

def highest_node() -> int:
    """Return the highest number of a NUMA node that is online.

    Returns
    -------
    int

    See Also
    --------
    topology : All nodes.

    Examples
    --------
    >>> len(ft.placement.topology().nodes) <= ft.placement.highest_node() + 1
    True

    """

def run_on_node(node: int) -> ThreadPlace: ...

@typing.final
class ThreadPlace:
    @property
    def why_not(self) -> str | None: ...
    def restore(self) -> None: ...

@disjoint_base
class NumbaBuffers:
    def __new__(cls, buffers: list[Buffer]) -> typing.Self: ...
    @property
    def buffers(self) -> list[Buffer]: ...

def numba_setup(get_api: int) -> dict[str, int]: ...
def numba_failure() -> tuple[str, tuple[int, int] | None]: ...
def inspect(
    array: np.ndarray,
) -> tuple[int, int, bool, list[tuple[str, int | None, str]], dict[int, int] | None, str]: ...
def pagemap(array: np.ndarray, nodes: bool, function: str) -> tuple[bytearray, bytearray]: ...
def trace_begin(file: str, facts: list[tuple[str, str]]) -> None: ...
def trace_end(start: list[float] = ...) -> tuple[int, int, str] | None: ...
def trace_is_on() -> bool: ...
def trace_summary(file: str, incomplete: bool) -> dict[str, typing.Any]: ...

"""Every public name as an operation that needs memory, to be run repeatedly. Contains no tests."""

from collections.abc import Callable
from typing import Any

import numpy as np

import firsttouch as ft

#: Classes and errors: nothing to call, or made by the operations below.
NO_OPERATIONS = {"Allocator", "SharedArrayError", "UnsupportedError", "__version__"}

POOL = ft.pool()
GUARDED, BEFORE = ft.guarded(), ft.guarded(side="before", keep="8 MiB")
LIMITED = ft.limited(ft.pool(), 1 << 30)
FILLED = ft.filled(ft.pool())
OVER = ft.pool(ft.malloc())
BUFFER = ft.ScratchBuffer("1 MiB")
ARRAY = POOL.empty(30000, "u1")
SHARED = ft.shared((1000,))
LENT = bytearray(200_000)
LIST = [[1.0, 2.0], [3.0, 4.0]]


def _within(manager: Any) -> np.ndarray:
    with manager:
        return np.ones(30000, "u1") + np.uint8(1)


def _alone(manager: Any) -> int:
    with manager:
        return int(np.ones(30000, "u1").sum())


def _resized(allocator: ft.Allocator) -> np.ndarray:
    array = allocator.full(30000, 7, "u1")
    array.resize(70000, refcheck=False)
    return array


def _installed() -> np.ndarray:
    ft.install()
    try:
        return np.ones(30000, "u1")
    finally:
        ft.uninstall()


@ft.scratch
def _decorated() -> np.ndarray:
    return np.ones(3000) + 1


def _measured() -> int:
    with ft.measure() as m:
        np.ones(30000, "u1")
    return m.arrays


def _address(name: str) -> int:
    import ctypes

    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


MALLOC, FREE = _address("malloc"), _address("free")

#: By public name, with more than one for some: the name is what stands before a blank.
OPERATIONS: dict[str, Callable[[], object]] = {
    "FixedBuffer": lambda: ft.FixedBuffer("1 MiB"),
    "FixedBuffer lent": lambda: _alone(ft.scratch(ft.FixedBuffer(LENT))),
    "ScratchBuffer": lambda: ft.ScratchBuffer("1 MiB"),
    "ScratchBuffer resized": lambda: _resized(BUFFER),
    "ScratchBuffer empty": lambda: int(BUFFER.zeros(3000).sum()),
    "ScratchBuffer repr": lambda: repr(BUFFER),
    "ScratchBuffer figures": lambda: type((BUFFER.used, BUFFER.capacity, BUFFER.peak)),
    "aligned": lambda: ft.aligned(256),
    "aligned empty": lambda: ft.aligned(256).zeros(3000),
    "array": lambda: ft.array(LIST, allocator=POOL),
    "calloc": lambda: ft.calloc().zeros(3000),
    "current_node": ft.placement.current_node,
    "default_buffer": ft.buffers.default_buffer,
    "empty": lambda: ft.empty(30000, "u1", allocator=POOL).nbytes,
    "empty_like": lambda: ft.empty_like(ARRAY, allocator=POOL).nbytes,
    "filled": lambda: ft.filled(POOL),
    "filled resized": lambda: _resized(FILLED),
    "filled zeros": lambda: FILLED.zeros(3000),
    "from_functions": lambda: ft.allocators.from_functions(malloc=MALLOC, free=FREE),
    "full": lambda: ft.full(3000, 3.0, allocator=POOL),
    "full_like": lambda: ft.full_like(ARRAY, 3, allocator=POOL),
    "get_allocator": lambda: ft.get_allocator(ARRAY),
    "get_allocator current": ft.get_allocator,
    "guarded": lambda: ft.guarded(),
    "guarded before": lambda: _resized(BEFORE),
    "guarded resized": lambda: _resized(GUARDED),
    "guarded zeros": lambda: GUARDED.zeros(30000, "u1"),
    "inspect": lambda: type(ft.inspect(ARRAY)),
    "inspect str": lambda: type(str(ft.inspect(ARRAY))),
    "install": _installed,
    "is_installed": ft.is_installed,
    "jemalloc": lambda: ft.jemalloc().zeros(30000, "u1"),
    "last_failure": lambda: isinstance(ft.last_failure(), (ft.process.Failure, type(None))),
    "last_failure str": lambda: type(str(ft.last_failure())),
    "limited": lambda: ft.limited(POOL, 100),
    "limited resized": lambda: _resized(LIMITED),
    "limited zeros": lambda: LIMITED.zeros(30000, "u1"),
    "malloc": lambda: ft.malloc().zeros(3000),
    "malloc resized": lambda: _resized(ft.malloc()),
    "measure": _measured,
    "migrate": lambda: type(ft.migrate(ARRAY, "local")),
    "mimalloc": lambda: ft.mimalloc().zeros(30000, "u1"),
    "numa": lambda: ft.numa("local").zeros(3000),
    "numpy_default": lambda: ft.numpy_default().zeros(3000),
    "ones": lambda: ft.ones(3000, allocator=POOL),
    "ones_like": lambda: ft.ones_like(ARRAY, allocator=POOL),
    "inspect pagemap": lambda: type(ft.inspection.pagemap(ARRAY)),
    "pages": lambda: ft.pages(huge=False).zeros(30000, "u1"),
    "pages resized": lambda: _resized(ft.pages()),
    "pages populate": lambda: ft.pages(populate=True).zeros(30000, "u1"),
    "pool": lambda: ft.pool(),
    "pool over": lambda: ft.pool(ft.malloc()),
    "pool over resized": lambda: _resized(OVER),
    "pool over zeros": lambda: OVER.zeros(30000, "u1"),
    "pool resized": lambda: _resized(POOL),
    "pool zeros": lambda: POOL.zeros(40 << 10, "u1"),
    "pool repr": lambda: repr(POOL),
    "pool equal": lambda: (ft.calloc() == POOL, len({POOL, OVER})),
    "receipt": lambda: type(ft.receipt(ARRAY)),
    "scratch": lambda: _alone(ft.scratch(BUFFER)),
    "scratch default": lambda: _alone(ft.scratch()),
    "scratch decorated": lambda: _decorated(),
    "scratch escaping": lambda: _within(ft.scratch(BUFFER)),
    "share": lambda: ft.sharing.share(np.ones(1000)),
    "shared": lambda: ft.shared((1000,)),
    "stats": lambda: type(ft.stats(POOL)),
    "stats str": lambda: type(str(ft.stats(POOL))),
    "topology": lambda: type(ft.placement.topology()),
    "touch": lambda: ft.touch(ARRAY),
    "trim": lambda: type(ft.trim()),
    "uninstall": ft.uninstall,
    "use": lambda: _within(ft.use(POOL)),
    "use filled": lambda: _within(ft.use(FILLED)),
    "using_buffer": lambda: _alone(ft.buffers.using_buffer(BUFFER)),
    "zeros": lambda: ft.zeros(30000, "u1", allocator=POOL),
    "zeros_like": lambda: ft.zeros_like(ARRAY, allocator=POOL),
}

"""The parts of random programs on scratch memory: threads, contexts, buffers, and arrays with known contents."""

import contextlib
import contextvars
import gc
import traceback
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

import firsttouch as ft
from tests.probe import fill, intact

R = TypeVar("R")

CHUNK = 32 << 10
SIZES = (0, 1, 40, 1_000, 1_500, 4_000, 4_096, 5_000, 20_000, 40_000, 150_000)


#: Every kind of buffer; `None` is the default one of whoever enters.
BUFFERS: dict[str, Callable[[], Any]] = {
    "growing": lambda: ft.ScratchBuffer(CHUNK),
    "limited": lambda: ft.ScratchBuffer(CHUNK, limit=8 * CHUNK),
    "on malloc": lambda: ft.ScratchBuffer(CHUNK, upstream=ft.malloc()),
    "debug": lambda: ft.ScratchBuffer(CHUNK, debug=True),
    "fixed": lambda: ft.FixedBuffer(6 * CHUNK),
    "fixed on bytes": lambda: ft.FixedBuffer(memoryview(bytearray(300_001))[7:]),
    "default": lambda: None,
}


class Open(NamedTuple):
    """A scope that was entered, and not left."""

    scratch: Any
    scope: Any


class World:
    """All that lives while a random program runs."""

    def __init__(self) -> None:
        self.worker = ThreadPoolExecutor(1)
        self.contexts = [contextvars.copy_context() for _ in range(2)]
        self.buffers = {name: make() for name, make in BUFFERS.items()}
        self.kept: list[tuple[Any, int]] = []
        self.open: list[Open] = []
        self.generators: list[Generator[Any]] = []
        self.errors: list[tuple[BaseException, Any, int]] = []
        self.seeds = 0

    def at(self, place: int, function: Callable[..., R], *arguments: Any) -> R:
        """Calls a function here, in another context of this thread, or in another thread."""
        if place == 0:
            return function(*arguments)
        if place == 1:
            return self.contexts[0].run(function, *arguments)
        return self.worker.submit(self.contexts[1].run, function, *arguments).result()

    def keep(self, array: Any) -> int:
        """Writes to an array of bytes, and follows it."""
        self.seeds += 1
        fill(array, self.seeds)
        self.kept.append((array, self.seeds))
        return self.seeds

    def enter(self, name: str) -> None:
        scratch = ft.scratch(self.buffers[name])
        self.open.append(Open(scratch, scratch.__enter__()))

    def leave(self, number: int) -> None:
        if self.open:
            left = self.open.pop(number % len(self.open))
            left.scratch.__exit__(None, None, None)
            assert not left.scope.is_open

    def failing(self, name: str, size: int) -> None:
        """Leaves a scope by an exception that is kept, and with it this function's frame."""
        array = None
        try:
            with ft.scratch(self.buffers[name]):
                array = np.empty(size, np.uint8)
                self.keep(array)
                raise KeyError(size)
        except KeyError as error:
            self.errors.append((error, weakref.ref(array), self.kept.pop()[1]))
        except MemoryError:  # it is full
            pass

    def inside(self, name: str, sizes: list[int]) -> Generator[Any]:
        """A generator that is suspended in its scope."""
        with ft.scratch(self.buffers[name]):
            for size in sizes:
                yield np.empty(size, np.uint8)

    def check(self) -> None:
        """Every byte of every living array is as it was written, and scopes know how they are."""
        contextvars.Context().run(self._check)  # on memory of nobody's scope, which may be full

    def _check(self) -> None:
        for array, seed in self.kept:
            assert intact(array, seed), (array.size, seed)
        for error, array, seed in self.errors:
            assert array() is not None, traceback.format_exception(error)
            assert intact(array(), seed)
        assert all(each.scope.is_open for each in self.open)

    def end(self) -> None:
        """Leaves and drops everything; nothing may be held by the buffers then."""
        for generator in self.generators:
            with contextlib.suppress(RuntimeError):
                generator.close()
        while self.open:
            self.leave(len(self.open) - 1)
        self.check()
        self.generators.clear()
        self.errors.clear()
        self.kept.clear()
        gc.collect()
        for name, buffer in self.buffers.items():
            if isinstance(buffer, ft.buffers.Buffer):
                assert buffer.used == 0, name
                buffer.reset()
        assert self.at(0, ft.buffers.default_buffer).used == 0 == self.at(2, ft.buffers.default_buffer).used
        self.worker.shutdown()

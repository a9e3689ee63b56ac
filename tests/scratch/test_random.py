"""Random programs on scratch memory, with contexts, threads, forks and exceptions: no byte of a live array changes.

All arrays are checked after every step. FIRSTTOUCH_STRESS_STEPS sets the length of the programs.
"""

import contextlib
import contextvars
import gc
import mmap
import os
import pickle
import random
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import firsttouch as ft

STEPS = int(os.environ.get("FIRSTTOUCH_STRESS_STEPS", "2000"))
SEED = int(os.environ.get("FIRSTTOUCH_STRESS_SEED", "1"))
SIZES = [1, 900, 1_100, 5_000, 9_000, 40_000, 100_000, 200_000]
MOST = 30
"""Arrays that live at once."""
_BASE = random.Random(1).randbytes(1 << 20)


def fill(array: Any, pattern: int) -> None:
    """Writes bytes that tell which pattern they are. Here as below no array is made: their memory would be scopes'."""
    array[:] = np.frombuffer(_BASE, np.uint8, array.size, pattern)


def intact(array: Any, pattern: int) -> bool:
    return bool(array.tobytes() == _BASE[pattern : pattern + array.size])


class Arrays:
    """The arrays of a thread; `shared` hands arrays over to other threads."""

    def __init__(self, seed: int, shared: list[Any] | None = None) -> None:
        self.random = random.Random(seed)
        self.living: list[tuple[Any, Any, int]] = []  # an array, what keeps its memory, its pattern
        self.open: list[Any] = []
        self.buffers: list[Any] = [None]
        self.shared = shared if shared is not None else []

    def buffer(self) -> Any:
        return self.random.choice(self.buffers)

    def keep(self, array: Any, holder: Any = None) -> None:
        if len(self.living) >= MOST:
            self.drop()
        pattern = self.random.getrandbits(16)
        fill(array, pattern)
        self.living.append((array, array if holder is None else holder, pattern))

    def new(self) -> Any:
        """An array from whoever serves here."""
        size, way = self.random.choice(SIZES) + self.random.randrange(100), self.random.randrange(7)
        if way == 0:
            array = np.zeros(size, np.uint8)
            assert not array.any()
            return array
        if way == 1:
            return (np.ones(size // 8 + 1) * 2 + 1).view(np.uint8)
        if way == 2 and self.open:
            scope = self.random.choice(self.open)[1]
            if isinstance(scope, ft.buffers.Scope) and scope.is_open:
                array = scope.zeros(size, np.uint8)
                assert not array.any()
                return array if self.random.random() < 0.5 else np.asarray(scope.alloc(size, 64 << size % 3))
        if way == 3:
            buffer = self.buffer()
            return (buffer if isinstance(buffer, ft.ScratchBuffer | ft.FixedBuffer) else ft).empty(size, np.uint8)
        return np.empty(size, np.uint8)

    def make(self) -> None:
        with contextlib.suppress(MemoryError, RuntimeError):  # no room; another thread's scope
            self.keep(self.new())

    def drop(self) -> None:
        if self.living:
            self.living.pop(self.random.randrange(len(self.living)))

    def resize(self) -> None:
        if self.living:
            at = self.random.randrange(len(self.living))
            array, holder, pattern = self.living[at]
            if holder is array and array.base is None:
                del self.living[at]
                old, new = array.size, self.random.choice(SIZES)
                with contextlib.suppress(MemoryError):
                    array.resize(new, refcheck=False)
                    assert not array[old:].any()
                assert intact(array[:old], pattern)
                self.keep(array)

    def write(self) -> None:
        if self.living:
            array, holder, _ = self.living.pop()
            self.keep(array, holder)

    def view(self) -> None:
        """From now on a view or a memoryview keeps the memory."""
        if self.living:
            array, holder, _ = self.living.pop()
            view = array[array.size // 3 :] if self.random.random() < 0.5 else np.asarray(memoryview(array).cast("B"))
            del array, holder
            self.keep(view, memoryview(view))

    def hand_over(self) -> None:
        if self.living and len(self.shared) < 2 * MOST:
            self.shared.append(self.living.pop())
        with contextlib.suppress(IndexError):
            array, _, pattern = taken = self.shared.pop(0)
            assert intact(array, pattern)
            self.living.append(taken)

    def pickled(self) -> None:
        if self.living:
            array, _, pattern = self.random.choice(self.living)
            with contextlib.suppress(MemoryError):
                assert intact(pickle.loads(pickle.dumps(array, protocol=5)), pattern)

    def check(self) -> None:
        assert all(intact(array, pattern) for array, _, pattern in self.living)


def suspended(manager: Any) -> Any:
    with manager as scope:
        yield scope


class Program(Arrays):
    """A thread's arrays, scopes and contexts."""

    def __init__(self, seed: int, shared: list[Any] | None = None, *, debug: bool = False) -> None:
        super().__init__(seed, shared)
        self.generators: list[Any] = []
        self.contexts: list[Any] = [contextvars.copy_context()]
        self.worker = ThreadPoolExecutor(1)
        self.errors: list[tuple[BaseException, Any]] = []
        self.buffers = [
            None,
            ft.ScratchBuffer("64 KiB", debug=debug),
            ft.ScratchBuffer("256 KiB", limit="2 MiB"),
            ft.FixedBuffer("512 KiB", debug=debug),
            ft.FixedBuffer(mmap.mmap(-1, 1 << 18)),
            ft.ScratchBuffer(upstream=ft.malloc()),
        ]
        self.steps: list[Callable[[], None]] = [
            *[self.make, self.drop] * 8,
            *[self.enter, self.leave, self.leave_any] * 3,
            *[self.begin, self.end, self.call, self.resize, self.write, self.view, self.elsewhere, self.hand_over] * 2,
            *[self.remember, self.forget, self.in_thread, self.reset, self.pickled, self.replace, self.fail],
        ]

    def manager(self) -> Any:
        way = self.random.randrange(6)
        if way == 0:
            return ft.use(self.random.choice([ft.calloc(), ft.aligned(64), ft.pool(), ft.numpy_default()]))
        if way == 1:
            return ft.buffers.using_buffer(self.random.choice(self.buffers[1:]))
        return ft.scratch(self.buffer())

    def enter(self) -> None:
        if len(self.open) < 8:
            manager = self.manager()
            self.open.append((manager, manager.__enter__()))

    def leave(self) -> None:
        if self.open:
            self.open.pop()[0].__exit__(None, None, None)

    def leave_any(self) -> None:
        if self.open and self.random.random() < 0.3:
            self.open.pop(self.random.randrange(len(self.open)))[0].__exit__(None, None, None)

    def begin(self) -> None:
        if len(self.generators) < 6:
            self.generators.append(suspended(self.manager()))
            self.random.choice(self.contexts).run(next, self.generators[-1])

    def end(self) -> None:
        if self.generators:
            generator = self.generators.pop(self.random.randrange(len(self.generators)))
            self.random.choice([*self.contexts, self]).run(generator.close)

    def run(self, step: Callable[[], Any]) -> Any:
        return step()

    def call(self) -> None:
        """A decorated function that calls itself, leaves some arrays behind, and returns some or fails."""

        @ft.scratch(self.buffer())
        def call(turns: int) -> Any:
            array = self.new()
            fill(array, 7)
            self.make()
            if turns:
                inner = call(turns - 1)
                assert inner is None or all(intact(each, 7) for each in inner)
            match self.random.randrange(5):
                case 0:
                    raise ZeroDivisionError
                case 1:
                    return None
                case 2:
                    held = self.random.choice(self.contexts).run(self.new)
                    fill(held, 7)
                    return [array, held, array]
            return (array, array[:])

        with contextlib.suppress(MemoryError, RuntimeError, ZeroDivisionError):
            made = call(self.random.randrange(3))
            for array in made or ():
                assert intact(array, 7)
            if made:
                self.keep(made[0])

    def fail(self) -> None:
        """Leaves a scope by an exception that is kept, and with it this function's frame and its array."""
        array = None
        try:
            with ft.scratch(self.buffer()):
                array = self.new()
                fill(array, 7)
                raise KeyError
        except KeyError as error:
            self.errors = [*self.errors[-3:], (error, weakref.ref(array))]
        except (MemoryError, RuntimeError):
            pass

    def check(self) -> None:
        super().check()
        assert all(array() is not None and intact(array(), 7) for _, array in self.errors)

    def elsewhere(self) -> None:
        self.random.choice(self.contexts).run(self.make)

    def remember(self) -> None:
        self.contexts[1:] = [*self.contexts[-4:], contextvars.copy_context()]

    def forget(self) -> None:
        del self.contexts[1:]

    def in_thread(self) -> None:
        context = self.random.choice([None, contextvars.copy_context()])
        step = self.random.choice([self.make, self.make, self.drop, self.view, self.resize])
        if context is None:
            self.worker.submit(step).result()
        else:
            self.worker.submit(context.run, step).result()

    def reset(self) -> None:
        self.random.choice(self.buffers[1:]).reset()

    def replace(self) -> None:
        """A buffer goes while its arrays live; another comes."""
        self.buffers[5] = ft.ScratchBuffer(upstream=ft.malloc())
        self.buffers[1] = ft.ScratchBuffer("64 KiB", debug=self.random.random() < 0.5)

    def forked(self) -> None:
        """A child reads all, goes on for some steps, and tells by its end whether all was well."""
        if (child := os.fork()) == 0:
            status = 1
            with contextlib.suppress(BaseException):
                self.worker = ThreadPoolExecutor(1)
                self.check()
                # What writes to arrays that exist: the parent would see that in shared memory.
                writes = [self.write, self.resize, self.view, self.in_thread]
                self.steps = [step for step in self.steps if step not in writes]
                self.go(30)
                status = 0
            os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(self.steps)()
            self.check()

    def finish(self) -> None:
        """Leaves everything."""
        while self.open:
            self.leave()
        while self.generators:
            self.end()
        self.worker.shutdown()
        self.check()
        self.living.clear()
        self.errors.clear()
        self.contexts.clear()
        gc.collect()  # closures that call themselves
        for buffer in self.buffers[1:5]:
            buffer.reset()
            assert buffer.used == 0


@pytest.mark.parametrize("debug", [False, True])
def test_one_thread(debug: bool) -> None:
    program = Program(SEED, debug=debug)
    context = contextvars.copy_context()
    context.run(program.go, STEPS)
    context.run(program.finish)


def test_threads_that_hand_arrays_over() -> None:
    failed: list[BaseException] = []
    shared: list[object] = []

    def run(seed: int) -> None:
        try:
            program = Program(seed, shared)
            program.go(STEPS // 4)
            program.finish()
        except BaseException as error:  # the main thread tells of it
            failed.append(error)

    threads = [threading.Thread(target=run, args=(SEED + number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forks() -> None:
    program = Program(SEED)
    context = contextvars.copy_context()
    for _ in range(max(1, STEPS // 500)):
        context.run(program.go, 100)
        context.run(program.forked)
    context.run(program.finish)

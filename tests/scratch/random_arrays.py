"""Arrays of random programs: created, passed on, resized and freed, each with known contents."""

import contextlib
import pickle
import random
from typing import Any

import numpy as np

import firsttouch as ft

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

"""Random programs: scopes in any order, in threads, contexts and generators, with arrays that outlive them.

Every byte of every living array is checked after every step. More of them:
`SCRATCH_STEPS=1000000 pytest --timeout 0 tests/scratch/test_machine.py`.
"""

import contextlib
import os
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import firsttouch as ft
from tests.scratch.machine import BUFFERS, SIZES, World

_STEPS = 50
_TOTAL = int(os.environ.get("SCRATCH_STEPS", "5000"))

places = st.integers(0, 2)
names = st.sampled_from(sorted(BUFFERS))
made_here = st.sampled_from(sorted(set(BUFFERS) - {"default", "own"}))
sizes = st.sampled_from(SIZES)
numbers = st.integers(0, 1000)


class Program(RuleBasedStateMachine):
    """What a user may do."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(place=places, name=names)
    def enter(self, place: int, name: str) -> None:
        self.world.at(place, self.world.enter, name)

    @rule(place=places, number=numbers)
    def leave(self, place: int, number: int) -> None:
        self.world.at(place, self.world.leave, number)

    @rule(place=places, size=sizes, zeroed=st.booleans())
    def make(self, place: int, size: int, zeroed: bool) -> None:
        try:
            array: Any = self.world.at(place, np.zeros if zeroed else np.empty, size, np.uint8)
        except MemoryError:
            return
        assert not (zeroed and array.any())
        self.world.keep(array)

    @rule(place=places, size=sizes, number=numbers, zeroed=st.booleans())
    def make_by_a_scope(self, place: int, size: int, number: int, zeroed: bool) -> None:
        if not self.world.open:
            return
        scope = self.world.open[number % len(self.world.open)].scope
        try:
            array = self.world.at(place, scope.zeros if zeroed else scope.empty, size, np.uint8)
        except (MemoryError, RuntimeError):  # it is full, or another thread's
            return
        assert not (zeroed and array.any())
        self.world.keep(array)

    @rule(place=places, size=sizes, name=made_here, raw=st.booleans())
    def make_by_a_buffer(self, place: int, size: int, name: str, raw: bool) -> None:
        buffer = self.world.buffers[name]
        try:
            made = self.world.at(place, buffer.alloc if raw else buffer.empty, *((size,) if raw else (size, np.uint8)))
        except MemoryError:
            return
        self.world.keep(np.frombuffer(made, np.uint8) if raw and size else np.asarray(made))

    @rule(place=places, number=numbers)
    def drop(self, place: int, number: int) -> None:
        if self.world.kept:
            self.world.at(place, self.world.kept.pop, number % len(self.world.kept))

    @rule(number=numbers)
    def keep_only_a_view(self, number: int) -> None:
        if self.world.kept:
            at = number % len(self.world.kept)
            array, seed = self.world.kept[at]
            self.world.kept[at] = (np.asarray(memoryview(array)) if number % 2 else array[:], seed)

    @rule(place=places, number=numbers, size=sizes)
    def resize(self, place: int, number: int, size: int) -> None:
        if not self.world.kept:
            return
        array, seed = self.world.kept.pop(number % len(self.world.kept))
        same = min(size, array.size)
        start = bytes(array[:same])
        try:
            self.world.at(place, lambda: array.resize(size, refcheck=False))
        except (MemoryError, ValueError):  # it is full, or the array owns nothing
            self.world.kept.append((array, seed))
            return
        assert bytes(array[:same]) == start
        self.world.keep(array)

    @rule(place=places, size=sizes)
    def compute(self, place: int, size: int) -> None:
        def body() -> None:
            x = np.full(size, 3, np.uint8)
            for _ in range(3):
                x = x * 2 + 1
            assert (x == 31).all()

        with contextlib.suppress(MemoryError):
            self.world.at(place, body)

    @rule(place=places, name=names, size=sizes, keep=st.booleans(), levels=st.integers(0, 2))
    def call(self, place: int, name: str, size: int, keep: bool, levels: int) -> None:
        @ft.scratch(self.world.buffers[name], result="keep" if keep else "copy")
        def called(levels: int) -> Any:
            array = np.empty(size, np.uint8)
            self.world.keep(np.empty(size // 2, np.uint8))
            return called(levels - 1) if levels else (array, array[size // 3 :])

        try:
            array, view = self.world.at(place, called, levels)
        except (MemoryError, RuntimeError):  # it is full, or another thread's
            return
        self.world.keep(array)
        assert bytes(view) == bytes(array[size // 3 :])

    @rule(place=places, name=names, size=sizes)
    def fail(self, place: int, name: str, size: int) -> None:
        self.world.at(place, self.world.failing, name, size)

    @rule(number=numbers)
    def forget_an_error(self, number: int) -> None:
        if self.world.errors:
            self.world.errors.pop(number % len(self.world.errors))

    @rule(place=places, name=names, some=st.lists(sizes, min_size=1, max_size=3))
    def start_a_generator(self, place: int, name: str, some: list[int]) -> None:
        self.world.generators.append(self.world.inside(name, some))
        self.go_on(place, -1)

    @rule(place=places, number=numbers)
    def go_on(self, place: int, number: int) -> None:
        if not self.world.generators:
            return
        generator = self.world.generators.pop(number % len(self.world.generators))
        try:
            self.world.keep(self.world.at(place, lambda: generator.send(None)))
        except (StopIteration, MemoryError, RuntimeError):  # StopIteration becomes a RuntimeError on its way
            return
        self.world.generators.append(generator)

    @rule(place=places, number=numbers)
    def close_a_generator(self, place: int, number: int) -> None:
        if self.world.generators:
            generator = self.world.generators.pop(number % len(self.world.generators))
            self.world.at(place, generator.close)

    @rule(name=made_here)
    def reset(self, name: str) -> None:
        self.world.buffers[name].reset()

    @rule(name=names)
    def another_buffer(self, name: str) -> None:
        """The old one is dropped, whatever lives on it."""
        self.world.buffers[name] = BUFFERS[name]()

    @invariant()
    def everything_is_intact(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        self.world.end()


def test_random_programs() -> None:
    run_state_machine_as_test(
        Program,
        settings=settings(
            max_examples=max(1, _TOTAL // _STEPS),
            stateful_step_count=_STEPS,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )

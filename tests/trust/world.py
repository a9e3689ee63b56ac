"""What a random program has made so far, and what its steps have in common."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

import numpy as np

import firsttouch as ft
from tests.trust.content import Filled
from tests.trust.expressions import Own, expression, functions, stacked

Step = Callable[["World", Random], None]

REFUSED: tuple[type[BaseException], ...] = (MemoryError, OSError)
"""What a step may raise where the system was made to refuse something; errors of the library derive from these."""


class World:
    """The arrays and allocators of a program, or of one of its threads.

    `most` bounds the bytes in arrays at the same time: beyond it, arrays are dropped. `tolerant` says that the system
    is short of something, so that steps may be refused.
    """

    alone: ClassVar[tuple[Step, ...]] = ()
    """The steps that may run within others: in threads, in children, during a shortage."""

    def __init__(self, most: int = 16 << 20, forks: bool = True, tolerant: bool = False) -> None:
        self.arrays: list[Filled] = []
        self.allocators: list[Any] = [None]
        self.pools: list[Any] = []
        self.buffers: list[Any] = []
        self.strands: list[Any] = []
        self.handed: list[Filled] = []
        """What threads that run at once leave for each other."""
        self.installed = False
        self.most = most
        self.forks = forks
        self.tolerant = tolerant
        self.steps = 0
        self.cramped = False
        """Whether Python itself is short of memory. It then cannot always start a thread, and ends the process where a
        thread that is not its own calls a callback of ctypes."""

    def keep(self, array: np.ndarray[Any, Any], random: Random, made: str) -> Filled:
        """Fill an array and keep it."""
        filled = Filled(array, random.randrange(1 << 30), made)
        filled.fill()
        self.arrays.append(filled)
        total = sum(each.nbytes for each in self.arrays)
        while total > self.most or len(self.arrays) > 300:
            total -= self.arrays.pop(random.randrange(len(self.arrays))).nbytes
        return filled

    def any(self, random: Random) -> Filled | None:
        return random.choice(self.arrays) if self.arrays else None

    def check(self) -> None:
        for filled in self.arrays:
            filled.check()

    def run(self, step: Step, random: Random) -> None:
        """Run a step, and check all that there is."""
        try:
            step(self, random)
        except REFUSED as error:
            if not self.tolerant:
                error.add_note(f"the last failure: {ft.last_failure()}")
                raise
        except RuntimeError as error:
            if not self.tolerant or "can't start new thread" not in str(error):
                raise
        self.steps += 1
        self.check()

    def some(self, random: Random, count: int) -> None:
        """Run some steps."""
        for _ in range(count):
            self.run(random.choice(self.alone), random)

    def size(self, random: Random) -> int:
        """Return a random size, from a byte to an eighth of what may be kept, small ones more often."""
        return int(2 ** random.uniform(0, random.choice((12, 16, 18, (self.most // 8).bit_length()))))

    def allocator(self, random: Random) -> Any:
        """Return an allocator that was made before, or a new one."""
        if random.random() < 0.6:
            return random.choice(self.allocators)
        made: Any
        match random.randrange(40):
            case 0:
                made = Own(random.choice(("", "pool()", "pages(huge='thp')")))  # its repr proves nothing
            case 1 if not self.cramped:
                made = functions()
            case 2 if not self.cramped:
                made = stacked(functions(), random)
            case 3:
                made = stacked(Own(), random)
            case _:
                made = expression(random, refusing=self.tolerant)
        self.know(made, random)
        return made

    def know(self, allocator: Any, random: Random) -> None:
        """Let an allocator be used again by later steps, for a while."""
        self.allocators.append(allocator)
        if len(self.allocators) > 12:
            del self.allocators[random.randrange(1, 12)]

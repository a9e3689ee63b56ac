"""Threads that do at once whatever may be done: ``python -m tests.free_threading.stress SECONDS [SEED]``.

Each thread plays one part again and again, on arrays that the others free. Bytes that change in between, an exception
and a thread that stands still end the program with an error. The last line says how often each part was played.
"""

import contextvars
import faulthandler
import gc
import json
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch import _firsttouch
from tests.free_threading.arrays import Left, marked, size, zeros
from tests.free_threading.custom import Own
from tests.free_threading.forks import forked

STILL = 90.0
"""Seconds after which a thread that has not ended its turn stands still, on a machine with other work to do."""

LEFT = Left()
POOLS = [ft.pool(), ft.pool(ft.pages(), decay=0.1), ft.pool(max_idle="1 MiB"), ft.tracked(ft.pool())]
OTHERS = [ft.calloc(), ft.aligned(256), ft.guarded(), ft.filled(ft.malloc()), ft.numpy_default()]
OWN = Own()
BUFFERS = [ft.ScratchBuffer("64 KiB"), ft.ScratchBuffer("256 KiB", limit="4 MiB"), ft.FixedBuffer("1 MiB")]
SHARED = ft.scratch()
"""A manager that all threads enter at once."""

Random = random.Random


def make(random: Random) -> None:
    """Arrays for others, and others' arrays."""
    mark = random.randrange(1, 1 << 60)
    array = zeros(size(random)) if random.random() < 0.3 else np.empty(size(random), np.int64)
    if random.random() < 0.2:
        array.resize(size(random), refcheck=False)
    LEFT.add(marked(array, mark), mark)
    LEFT.take()


def evaluate(random: Random) -> None:
    """Temporaries, some of which NumPy uses again in place."""
    a = np.full(size(random), 3.0)
    wrong = ((a * a + a) / (a + 1.0) - a) != 0.0
    if wrong.any():
        raise AssertionError(f"{int(wrong.sum())} of {a.size} items are wrong")


def use(random: Random) -> None:
    """Contexts, with allocators that all threads have, and with new ones that end at once."""
    allocator: Any = random.choice([*POOLS, *OTHERS, ft.pool(ft.pages()), OWN])
    with ft.use(allocator) if random.random() < 0.8 else ft.use():
        try:
            make(random)
            evaluate(random)
        except MemoryError:
            if allocator is not OWN:
                raise


def constructors(random: Random) -> None:
    """The package's own constructors."""
    mark, count = random.randrange(1, 1 << 60), size(random)
    way = random.randrange(4)
    if way == 0:
        array = ft.empty(count, np.int64)
    elif way == 1:
        array = ft.full(count, 0, np.int64, allocator=random.choice(POOLS))
    else:
        array = random.choice(POOLS).zeros(count, np.int64)
    LEFT.add(marked(array, mark), mark)


@ft.scratch
def decorated(random: Random) -> None:
    """A call with a scope of its own, which leaves arrays behind."""
    make(random)
    evaluate(random)


def scratch(random: Random) -> None:
    """Scopes, one in the other, on this thread's buffer and on those that threads take in turn."""
    for _ in range(3):
        with SHARED if random.random() < 0.5 else ft.scratch():
            decorated(random)
    try:
        buffer: Any = random.choice(BUFFERS)
        with ft.scratch(buffer) as scope:
            marked(scope.empty(500 + random.randrange(64), np.int64), 7)
            make(random)
    except RuntimeError as error:
        if "is in use by" not in str(error):
            raise
    except MemoryError:
        return  # a fixed buffer is full of other threads' arrays


def inherit(random: Random) -> None:
    """A thread that has this one's context, its allocator and its open scopes."""
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            decorated(random)
            make(random)
        except BaseException as error:
            wrong.append(error)

    with ft.use(random.choice(POOLS)), ft.scratch():
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        make(random)
        thread.join()
    if wrong:
        raise wrong[0]


def install(random: Random) -> None:
    """Another allocator for the process, or none."""
    if random.random() < 0.3:
        ft.uninstall()
    else:
        ft.install(random.choice(POOLS))
    evaluate(random)


def trim(random: Random) -> None:
    """What is kept idle goes, and is counted."""
    pool = random.choice(POOLS)
    ft.trim(pool)
    found = ft.stats(pool).as_dict()
    if found["in_use"] > found["peak_in_use"]:
        raise AssertionError(f"in use: {found}")
    ft.get_allocator(np.empty(1000))


def measure(random: Random) -> None:
    """Regions that begin and end while others are open."""
    with ft.measure(threads=random.choice(["all", "own"])) as found:
        evaluate(random)
        decorated(random)
        found.as_dict()
    if found.allocated < 0 or found.peak > found.allocated:
        raise AssertionError(f"measured: {found!r}")


def trace(random: Random) -> None:
    """A trace, whose every event is then read; one is recorded at a time."""
    file = f"stress-{threading.get_ident()}.trace"
    try:
        _firsttouch.trace_begin(file, [("process", str(os.getpid()))])
    except FileExistsError:
        return
    try:
        for _ in range(5):
            make(random)
        _firsttouch.trace_end()
        _firsttouch.trace_summary(file, True)
    finally:
        if os.path.exists(file):
            os.unlink(file)


def collect(random: Random) -> None:
    """Arrays in cycles, which the collector finds."""
    cycle: list[object] = [marked(np.empty(size(random), np.int64), 9)]
    cycle.append(cycle)
    del cycle
    if random.random() < 0.1:
        gc.collect()


def fork(random: Random) -> None:
    """A child that goes on with what it inherited."""

    def child() -> None:
        for part in (make, evaluate, use, constructors, scratch, trim):
            part(random)

    forked(child)
    time.sleep(0.05)


PARTS: list[tuple[Callable[[Random], None], int]] = [
    *((part, 2) for part in (make, use, scratch, constructors, trace)),
    *((part, 1) for part in (evaluate, inherit, install, trim, measure, collect, fork)),
]
"""Each, and how many threads play it."""


class Player(threading.Thread):
    """Plays a part until the time is over."""

    def __init__(self, part: Callable[[Random], None], seed: int, until: float) -> None:
        super().__init__(name=part.__name__, daemon=True)
        self.part, self.random, self.until = part, Random(seed), until
        self.turns, self.began = 0, time.monotonic()
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.turns or time.monotonic() < self.until:
                self.began = time.monotonic()
                self.part(self.random)
                self.turns += 1
        except BaseException as error:
            self.failed = error


def main(seconds: float, seed: int) -> int:
    warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # threads, at each fork
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*resize")
    faulthandler.enable()
    parts = [part for part, count in PARTS for _ in range(count)]
    until = time.monotonic() + seconds
    players = [Player(part, seed * 1000 + number, until) for number, part in enumerate(parts)]
    for player in players:
        player.start()
    while any(player.is_alive() for player in players):
        time.sleep(0.2)
        failed = next((player for player in players if player.failed is not None), None)
        if failed is not None and failed.failed is not None:
            print(f"{failed.name} failed with seed {seed}", file=sys.stderr, flush=True)
            sys.excepthook(type(failed.failed), failed.failed, failed.failed.__traceback__)
            os._exit(1)
        still = [player for player in players if player.is_alive() and time.monotonic() - player.began > STILL]
        if still:
            print(f"{still[0].name} stands still, seed {seed}", file=sys.stderr, flush=True)
            faulthandler.dump_traceback(all_threads=True)
            os._exit(2)
    ft.uninstall()
    while LEFT.arrays:
        LEFT.take()
    gc.collect()
    _firsttouch.deliver()
    if OWN.kept:
        print(f"{len(OWN.kept)} blocks were not given back", file=sys.stderr)
        return 1
    turns = Counter[str]()
    for player in players:
        turns[player.name] += player.turns
    print(json.dumps({"gil": getattr(sys, "_is_gil_enabled", lambda: True)(), "turns": turns}))
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))

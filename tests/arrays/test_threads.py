"""Arrays written, checked and freed across threads, out of order, while others install, uninstall and trim."""

import queue
import random
import threading
import time
from collections.abc import Callable

import numpy as np

import firsttouch as ft
from tests.probe import KIB, MIB, Bytes, fill, intact

Item = tuple[Bytes, int]


class Crew:
    """Threads that work until time is up; the first error of any of them is raised at the end."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def works(self) -> bool:
        return time.monotonic() < self._end and not self._errors

    def add(self, body: Callable[[], None]) -> None:
        def caught() -> None:
            try:
                body()
            except BaseException as error:
                self._errors.append(error)

        self._threads.append(threading.Thread(target=caught))

    def run(self) -> None:
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]


def some_size(dice: random.Random) -> int:
    return int(dice.choice([4 * KIB, 40 * KIB, 300 * KIB, 3 * MIB, 9 * MIB]) * dice.uniform(0.5, 1.5))


def test_from_hand_to_hand_while_everything_changes() -> None:
    crew = Crew(4)
    pools = [ft.pool(decay=0.1), ft.pool(ft.pages(), max_idle="8 MiB"), ft.pages("thp")]
    hand_over: queue.SimpleQueue[Item] = queue.SimpleQueue()
    freed = 0

    def produce(seed: int) -> Callable[[], None]:
        def body() -> None:
            dice = random.Random(seed)
            own: list[Item] = []
            while crew.works():
                size, its = some_size(dice), dice.randrange(1 << 20)
                array = np.zeros(size, np.uint8) if dice.random() < 0.3 else np.empty(size, np.uint8)
                fill(array, its)
                if dice.random() < 0.5 and hand_over.qsize() < 50:
                    hand_over.put((array, its))
                else:
                    own.append((array, its))
                if len(own) > 10:
                    old, its = own.pop(dice.randrange(len(own)))
                    assert intact(old, its)
            assert all(intact(*item) for item in own)

        return body

    def consume() -> None:
        nonlocal freed
        dice = random.Random(0)
        kept: list[Item] = []
        while crew.works():
            try:
                kept.append(hand_over.get(timeout=0.05))
            except queue.Empty:
                continue
            if len(kept) > 20:
                array, its = kept.pop(dice.randrange(len(kept)))
                assert intact(array, its)
                freed += 1
        assert all(intact(*item) for item in kept)

    def change() -> None:
        dice = random.Random(1)
        while crew.works():
            match dice.randrange(4):
                case 0:
                    ft.install(dice.choice(pools))
                case 1:
                    ft.uninstall()
                case 3:
                    ft.install()
                case _:
                    ft.trim(dice.choice(pools))
            time.sleep(0.003)

    for seed in (2, 3):
        crew.add(produce(seed))
    crew.add(consume)
    crew.add(change)
    crew.run()
    assert freed > 50
    while not hand_over.empty():
        assert intact(*hand_over.get())
    ends = [ft.stats(pool) for pool in pools]
    assert [(end.blocks, end.active) for end in ends] == [(0, 0)] * 3

"""Classic allocator workloads: memory held compared with memory in use, and the time."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measuring import AGAIN, Matrix, Plan, Section, Verdict, collect, everyone, judge, losses, median
from firsttouch._internal.process_memory import peak, reset_peak, resident
from firsttouch.tools.bench.common import MIB
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


Array = np.ndarray[Any, np.dtype[np.uint8]]
THREADS = 4


def array(chance: random.Random, low: int, high: int) -> Array:
    """Return an array of a log-uniformly distributed size, with its ends written."""
    made: Array = np.empty(int(low * (high / low) ** chance.random()), np.uint8)
    made[0] = made[-1] = 1
    return made


def together(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Run the work in that many threads."""
    running = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def random_lifetimes(allocations: int) -> None:
    """Allocate sizes from 1 KiB to 1 MiB; each replaces a random slot, so some are freed soon and some late."""
    chance = random.Random(1)
    living: list[Array | None] = [None] * 2000
    for _ in range(allocations):
        slot = int(len(living) * chance.random() ** 3)
        living[slot] = None
        living[slot] = array(chance, 1 << 10, 1 << 20)


def larson(allocations: int) -> None:
    """Simulate a server: each thread replaces its arrays at random, then passes them to the next thread."""

    def replace(seed: int, living: list[Array | None]) -> None:
        chance = random.Random(seed)
        for _ in range(2000):
            living[chance.randrange(len(living))] = array(chance, 4 << 10, 256 << 10)

    def serve(seed: int) -> None:
        living: list[Array | None] = [None] * 200
        for turn in range(allocations // THREADS // 2000):
            thread = threading.Thread(target=replace, args=(seed + THREADS * turn, living))
            thread.start()
            thread.join()

    together(serve)


def xmalloc(allocations: int) -> None:
    """Allocate batches in some threads and free them in others, in no order."""
    batches: queue.SimpleQueue[list[Array] | None] = queue.SimpleQueue()
    room = threading.Semaphore(16)

    def make(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(allocations // 64 // THREADS):
            room.acquire()
            batches.put([array(chance, 2 << 10, 512 << 10) for _ in range(64)])
        batches.put(None)

    def drop() -> None:
        while (batch := batches.get()) is not None:
            random.Random(len(batch)).shuffle(batch)
            batch.clear()
            room.release()

    consumers = [threading.Thread(target=drop) for _ in range(THREADS)]
    for consumer in consumers:
        consumer.start()
    together(make)
    for consumer in consumers:
        consumer.join()


def mstress(allocations: int) -> None:
    """Let each thread keep some arrays, free others, and swap some with a shared table."""
    shared: list[Array | None] = [None] * 256

    def stress(seed: int) -> None:
        chance = random.Random(seed)
        kept: list[Array | None] = []
        for _ in range(allocations // THREADS):
            made: Array | None = array(chance, 1 << 10, 256 << 10)
            draw = chance.random()
            if draw < 0.3:
                kept.append(made)
            elif draw < 0.5:
                place = chance.randrange(len(shared))
                made, shared[place] = shared[place], made
            if len(kept) > 300:
                del kept[::2]

    together(stress)


def producer_consumer(allocations: int) -> None:
    """Let one thread read frames, and another make results from them and keep the last few."""
    frames: queue.Queue[Array | None] = queue.Queue(32)

    def consume() -> None:
        results: list[Array] = []
        while (frame := frames.get()) is not None:
            results.append(frame[::2] + np.uint8(1))
            del results[:-20]

    consumer = threading.Thread(target=consume)
    consumer.start()
    chance = random.Random(3)
    for _ in range(allocations):
        frames.put(array(chance, 32 << 10, 1 << 20))
    frames.put(None)
    consumer.join()


WORKLOADS: dict[str, tuple[Callable[[int], None], int]] = {
    "random lifetimes": (random_lifetimes, 1_000_000),
    "larson": (larson, 200_000),
    "xmalloc": (xmalloc, 200_000),
    "mstress": (mstress, 200_000),
    "producer and consumer": (producer_consumer, 20_000),
}


def measure(workload: str, part: float, pooled: bool) -> dict[str, float]:
    """Run a part of a workload; return seconds, peak resident memory, and the pool's own peaks."""
    function, allocations = WORKLOADS[workload]
    before = resident()
    reset_peak()
    start = time.perf_counter()
    function(int(allocations * part))
    reply = {"seconds": time.perf_counter() - start, "resident": float(peak() - before)}
    if pooled:
        import firsttouch

        stats = firsttouch.stats()
        reply |= {"held": float(stats.peak_held), "in use": float(stats.peak_in_use)}
    return reply


# ---- The experiment


BAR = 2.0
PART = 0.04  # the part that is timed in rounds; memory is read after the whole


def ask(workload: str, part: float, pooled: bool) -> Call:
    """Return the call for a workload, or a part of it."""
    arguments = {"workload": workload, "part": part, "pooled": pooled}
    return Call("benchmarks.experiments.workloads", "measure", arguments)


def run(quick: bool) -> Section:
    """Run the whole workload for the memory, and a part of it in interleaved rounds for the time."""
    section = Section(
        "workloads",
        "A million allocations, larson, xmalloc, mstress, producer and consumer",
        f"the peak of the memory held stays under {BAR:g} times the peak of the memory in use. Time has no bar: "
        "cells are firsttouch's divided by the column's.",
    )
    contenders = [NUMPY, FIRSTTOUCH, AGAIN] if quick else everyone()
    others = [contender for contender in contenders if contender != FIRSTTOUCH]
    held = Table("**Memory at the peak, MiB**", ["workload", "in use", "held", "ratio", "allocations"])
    timed = Table("**Time**", ["workload", *(contender.name for contender in others), "time"])
    cells: dict[str, Matrix] = {}
    times: dict[str, Matrix] = {}
    beaten: dict[tuple[str, str], Matrix] = {}
    part = PART if quick else 1.0
    for workload, (_, allocations) in WORKLOADS.items():
        whole = ask(workload, part, True)
        memory = collect([FIRSTTOUCH], whole, Plan(2, 1), alone=True)
        use, kept = (memory.column(FIRSTTOUCH, key) for key in ("in use", "held"))
        cells[workload] = kept / use
        row = [f"{median(column).value / MIB:,.1f}" for column in (use, kept)]
        count = f"{int(allocations * part):,}"
        held.rows.append([workload, *row, f"{median(cells[workload]).value:.2f}", count])
        samples = collect(contenders, ask(workload, PART, False), Plan.steady(quick))
        ratios = {other.name: samples.ratio(FIRSTTOUCH, other, "seconds") for other in others}
        times[workload] = ratios[NUMPY.name]
        beaten.update({(rival.name, workload): ratios[rival.name] for rival in others[2:]})
        took = f"{median(samples.column(FIRSTTOUCH, 'seconds')).value * 1e3:,.1f} ms"
        timed.rows.append([workload, *(str(median(ratio)) for ratio in ratios.values()), took])
        section.raw[workload] = {"memory": memory.replies, "time": samples.replies}
    section.tables += [held, timed]
    above = [f"{name} {median(cell).value:.2f}" for name, cell in cells.items() if median(cell).value >= BAR]
    got = ", ".join(above) or f"{max(median(cell).value for cell in cells.values()):.2f} at the most"
    section.verdicts.append(Verdict(f"held under {BAR:g} times in use", got, "failed" if above else "passed"))
    section.verdicts.append(judge("not slower than NumPy's default (no bar asked)", 1.0, times))
    section.notes += losses("firsttouch", beaten) if not quick else []
    return section

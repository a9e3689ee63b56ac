"""An elementwise expression on a Dask cluster of real processes."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import signal
import time
from typing import Any

import numpy as np

from benchmarks.measuring import Plan, Section, Verdict, collect, judge, median
from firsttouch._internal import process_memory as process
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


#: The variable with the settings of a contender's cluster.
VARIABLE = "BENCHMARK_DASK"

_ENVIRON = "distributed.nanny.pre-spawn-environ"
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "raised": {f"{_ENVIRON}.MALLOC_TRIM_THRESHOLD_": 4 << 30},
    "firsttouch": {"distributed.worker.preload": ["firsttouch.dask"]},
}


@contextlib.contextmanager
def cluster(limit: str, settings: dict[str, Any]) -> Any:
    """Return a client of one worker with two threads, with the environment's settings."""
    import dask.config
    from distributed import Client, LocalCluster

    chosen = SETTINGS[os.environ.get(VARIABLE, "default")]
    local = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0", "silence_logs": 50}
    with dask.config.set(settings | chosen), LocalCluster(memory_limit=limit, **local) as made, Client(made) as client:
        yield client


@functools.cache
def operands(size: int, chunk: int) -> tuple[Any, Any]:
    """Return two arrays that stay in a worker's memory until this process ends."""
    import dask.array as da
    from distributed import wait

    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    client = stack.enter_context(cluster("8 GiB", {}))
    a, b = client.persist([da.full((size, size), value, chunks=(chunk, chunk)) for value in (1.5, 2.5)])
    wait([a, b])
    return a, b


def expression(size: int, chunk: int) -> dict[str, float]:
    """Return the seconds of an elementwise expression, excluding the first time."""
    fresh = operands.cache_info().currsize == 0
    a, b = operands(size, chunk)
    wanted = ((a * b + a) / (b + 1.0) - a).sum()
    if fresh:
        wanted.compute()
    start = time.perf_counter()
    total = wanted.compute()
    return {"seconds": time.perf_counter() - start, "result": float(total)}


# ---- Near the memory limit.


def spilling(client: Any) -> float:
    """Compute with two arrays of more than half the limit, and an expression that needs as much again: results are
    spilled.
    """
    import dask.array as da

    a, b = client.persist([da.random.default_rng(n).random((6000, 6000), chunks=(1000, 1000)) for n in (1, 2)])
    total = 0.0
    for _ in range(2):
        e = (a * b + a) / (b + 1.0) - a
        total += float((e + e.T).mean(axis=0).sum().compute())
    return total


def bursts(client: Any) -> float:
    """Run tasks that hold most of what Dask allows before it pauses a worker, in blocks of two sizes."""
    return float(sum(client.gather(client.map(burst, range(10), nbytes=300 << 20))))


def burst(number: int, nbytes: int) -> float:
    """Hold eight blocks together, then ten that are a third as large."""
    total = 0.0
    for blocks, size in ((8, nbytes // 80), (10, nbytes // 240)):
        held = [np.full(size, float(number + block)) for block in range(blocks)]
        total += sum(float((block * 2.0 + 1.0).sum()) for block in held)
    return total


#: The workloads near the limit, with Dask's settings: the bursts test pausing, so nothing is spilled.
NEAR = {"spilling": (spilling, {}), "bursts": (bursts, {"spill": False, "target": False})}


def near_limit(workload: str) -> dict[str, float]:
    """Return the peak resident bytes of a worker with 1 GiB, and how often it was paused and restarted."""
    work, memory = NEAR[workload]
    with cluster("1 GiB", {f"distributed.worker.memory.{key}": value for key, value in memory.items()}) as client:
        client.run(process.reset_peak)
        before = set(client.run(os.getpid).values())
        start = time.perf_counter()
        result = work(client)
        seconds = time.perf_counter() - start
        lines = [text for log in client.get_worker_logs().values() for _, text in log]
        return {
            "seconds": seconds,
            "result": result,
            "peak": max(client.run(process.peak).values()),
            "paused": sum("Pausing worker" in line for line in lines),
            "restarted": len(set(client.run(os.getpid).values()) - before),
        }


def slowly(block: np.ndarray) -> np.ndarray:
    """Return the block, after a hundredth of a second."""
    time.sleep(0.01)
    return block


def killed(size: int) -> dict[str, float]:
    """Return a sum whose worker is killed during the computation, and the expected sum."""
    import dask.array as da

    with cluster("4 GiB", {}) as client:
        x = da.ones((size, size), chunks=(500, 500))
        future = client.compute((x * 3.0 + x).map_blocks(slowly).sum())
        while not any(client.processing().values()):
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return {"got": float(future.result(timeout=120)), "wanted": 4.0 * size * size}


# ---- The experiment


DEFAULT = Contender("Dask's default", {VARIABLE: "default"})
RAISED = Contender("trim threshold raised", {VARIABLE: "raised"})
PRELOAD = Contender("firsttouch.dask", {VARIABLE: "firsttouch"})
AGAIN = Contender("firsttouch.dask again", {VARIABLE: "firsttouch"})
BAR = 1.6


def run(quick: bool) -> Section:
    """Measure on clusters that wait while another one works."""
    size = 2000 if quick else 8000
    section = Section(
        "dask",
        "Dask: an expression on a LocalCluster",
        f"`((a*b+a)/(b+1.0)-a).sum()` over {size} x {size} in chunks of 500 x 500, one worker process with two "
        f"threads: at least {BAR} times faster than Dask's default, and no slower than with `MALLOC_TRIM_THRESHOLD_` "
        "raised in `distributed.nanny.pre-spawn-environ`. Ours is `distributed.worker.preload: [firsttouch.dask]`.",
    )
    if importlib.util.find_spec("distributed") is None:
        section.verdicts.append(Verdict(f"{BAR} times faster", "distributed is not installed", "not measured"))
        return section
    everyone = (DEFAULT, RAISED, PRELOAD, AGAIN)
    call = Call("benchmarks.experiments.dask", "expression", {"size": size, "chunk": 500})
    samples = collect(everyone, call, Plan(1, 2) if quick else Plan(4, 6), 0)
    section.raw["expression"] = samples.replies
    table = Table("", ["cluster", "seconds", "firsttouch.dask / it"])
    for who in everyone:
        taken = f"{median(samples.column(who, 'seconds')).value:.2f}"
        table.rows.append([who.name, taken, str(median(samples.ratio(PRELOAD, who, "seconds")))])
    section.tables.append(table)
    for bar, limit, other in (
        (f"at least {BAR} times faster than Dask's default", 1 / BAR, DEFAULT),
        ("no slower than with the trim threshold raised", 1.0, RAISED),
    ):
        section.verdicts.append(judge(bar, limit, {other.name: samples.ratio(PRELOAD, other, "seconds")}))
    return section

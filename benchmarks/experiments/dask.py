"""An elementwise expression on a Dask cluster of real processes."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import time
from typing import Any

from benchmarks.measuring import Plan, Section, Verdict, collect, judge, median
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
def cluster() -> Any:
    """Return a client of one worker with two threads, with the environment's settings."""
    import dask.config
    from distributed import Client, LocalCluster

    chosen = SETTINGS[os.environ.get(VARIABLE, "default")]
    local = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0", "silence_logs": 50}
    with dask.config.set(chosen), LocalCluster(memory_limit="8 GiB", **local) as made, Client(made) as client:
        yield client


@functools.cache
def operands(size: int, chunk: int) -> tuple[Any, Any]:
    """Return two arrays that stay in a worker's memory until this process ends."""
    import dask.array as da
    from distributed import wait

    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    client = stack.enter_context(cluster())
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

"""What stays resident after a peak: programs that reproduce public reports about memory that does not come back."""

from __future__ import annotations

import functools
import gc
import importlib.util
import io
import itertools
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Section, Verdict, judge, peers
from benchmarks.process_memory import status
from firsttouch.tools.bench.common import MIB
from firsttouch.tools.measuring.contenders import DEFAULT, POOL, environment
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own. Each takes a scale, and returns what lives on.

Array = np.ndarray[Any, np.dtype[Any]]


def joblib_1577(scale: float) -> list[Array]:
    """Receive arrays of 400 KB from workers, twice."""
    from joblib import Parallel, delayed

    for _ in range(2):
        Parallel(n_jobs=2)(delayed(np.ones)(50_000) for _ in range(int(700 * scale)))
    return []


@functools.cache
def _client() -> Any:
    from distributed import Client

    return Client(n_workers=1, threads_per_worker=2, memory_limit="4 GiB", dashboard_address=None, silence_logs=50)


def distributed_5971(scale: float) -> list[Array]:
    """Persist chunks of 160 KiB in a worker, and drop them."""
    import dask.array as da
    from distributed import wait

    wait(_client().persist(da.random.random(int(2000 * scale) * 20_480, chunks=20_480)))
    return []


def dask_3530(scale: float) -> list[Array]:
    """Split arrays into many shards, and join them again, in threads."""
    import dask

    def shards(seed: int) -> list[Array]:
        numbers = np.random.default_rng(seed).random(200_000)
        return [numbers[first::200].copy() for first in range(200)]

    parts = [dask.delayed(shards, pure=False)(seed) for seed in range(int(200 * scale))]
    joined = dask.delayed(lambda parts: [np.concatenate(each) for each in zip(*parts, strict=True)])(parts)
    return list(dask.compute(joined, scheduler="threads", num_workers=4)[0][:10])


def pandas_19941(scale: float) -> list[Array]:
    """Read tables with text in many threads, as a web server with a pool of threads does."""
    import pandas as pd

    text = "".join(f"{line},name {line},{line / 7},text of line {line}\n" for line in range(int(20_000 * scale) + 10))
    with ThreadPoolExecutor(8) as pool:
        frames = list(pool.map(lambda _: pd.read_csv(io.StringIO(text), header=None), range(32)))
    return [frames[-1][0].to_numpy().copy()]


def numpy_18358(scale: float) -> list[Array]:
    """Replace a large array by many small ones, and those by a large one."""
    count = int(15_000 * scale)
    _ = np.ones(count * 5000, np.int32)
    many = [np.ones(5000, np.int32) for _ in range(count)]
    kept = many[::500]
    del many, _
    _ = np.ones(count * 5000, np.int32)
    return kept


def numpy_15498(scale: float) -> list[Array]:
    """Hold arrays of random sizes, of 10 to 50 KB, in an array of objects; every hundredth lives on."""
    random = np.random.default_rng(1)
    held = np.zeros(int(12_000 * scale), object)
    for at in range(len(held)):
        held[at] = random.random((int(random.integers(25, 125)), 50))
    return list(held[::100])


def cpython_139839(scale: float) -> list[Array]:
    """Parse JSON with objects in objects."""

    def nested(number: int, depth: int) -> dict[str, Any]:
        inner = {f"{number:08x}-{depth}": nested(number, depth - 1)} if depth else {}
        return {"name": f"name {number}", "age": number % 80, **inner}

    text = json.dumps({str(number): nested(number, 6) for number in range(int(40_000 * scale))})
    parsed = json.loads(text)
    return [np.fromiter((each["age"] for each in parsed.values()), np.int64)]


def arrow_36100(scale: float) -> list[Array]:
    """Make a table of dictionaries, and dictionaries of the table."""
    import pyarrow as pa

    table = pa.Table.from_pylist([{"number": row, "text": f"text {row}" * 5} for row in range(int(400_000 * scale))])
    table.to_pylist()
    return [table["number"].to_numpy().copy()]


def polars_23128(scale: float) -> list[Array]:
    """Group and join."""
    import polars as pl

    random = np.random.default_rng(2)
    frame = pl.DataFrame({"key": random.integers(0, 1000, int(3_000_000 * scale)), "value": 1.0})
    joined = frame.join(frame.group_by("key").agg(pl.col("value").sum().alias("sum")), on="key")
    return [joined.group_by("key").agg(pl.col("sum").mean())["sum"].to_numpy().copy()]


def duckdb_13590(scale: float) -> list[Array]:
    """Fill a table in memory, fetch it, and close the connection."""
    import duckdb

    with duckdb.connect() as connection:
        rows = int(3_000_000 * scale)
        connection.execute(f"create table t as select range as id, 'text ' || range as text from range({rows})")
        connection.execute("select id, text from t order by text desc").fetchnumpy()
        return [connection.execute("select count(*) from t group by id % 100").fetchnumpy()["count_star()"].copy()]


PROGRAMS: dict[str, Callable[[float], list[Array]]] = {
    program.__name__.replace("_", "#"): program
    for program in (
        joblib_1577,
        distributed_5971,
        dask_3530,
        pandas_19941,
        numpy_18358,
        numpy_15498,
        cpython_139839,
        arrow_36100,
        polars_23128,
        duckdb_13590,
    )
}
WAIT = 2.0


def held(field: str) -> int:
    """Return a field of /proc/PID/status in bytes, summed over this process and its descendants."""
    import psutil

    me, total = psutil.Process(), 0
    for process in [me, *me.children(recursive=True)]:
        lines = Path(f"/proc/{process.pid}/status").read_text(errors="replace").splitlines()
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))
    return total


def measure(name: str, scale: float = 1.0) -> dict[str, float]:
    """Return what is resident at the start, once libraries are loaded and workers run, at the peak, and at the end."""
    PROGRAMS[name](scale / 50)
    gc.collect()
    start = held("VmRSS")
    kept = PROGRAMS[name](scale)
    gc.collect()
    time.sleep(WAIT)
    return {"start": start, "peak": held("VmHWM"), "live": sum(array.nbytes for array in kept), "left": held("VmRSS")}


def service(trims: bool, seconds: float) -> dict[str, float]:
    """Answer requests, with what glibc keeps given back or not: processor seconds of one, and how the process grew."""
    import firsttouch as ft

    ft.install(trim_c_library=trims)
    random = np.random.default_rng(3)
    recent: deque[dict[str, Any]] = deque(maxlen=50)
    sizes: list[int] = []
    begin, start = time.monotonic(), time.process_time()
    for _ in itertools.count():
        rows = [{"id": row, "name": f"name {row}", "values": [row / 7, row / 3]} for row in range(2000)]
        parsed = json.loads(json.dumps(rows))
        numbers = random.random(int(random.integers(10_000, 200_000)))
        recent.append({"rows": parsed[:100], "mean": float((numbers * 2 - numbers.mean()).sum())})
        sizes.append(status("VmRSS"))
        if time.monotonic() - begin > seconds:
            break
    quarter = max(len(sizes) // 4, 1)
    return {
        "seconds": (time.process_time() - start) / len(sizes),
        "grown": max(sizes[-quarter:]) / max(sizes[quarter : 2 * quarter]),
    }


# ---- The experiment

BAR, RUNS = 1.2, 3
SLOWER, GROWN = 1.01, 1.02


def run(quick: bool) -> Section:
    """Run every program under every contender, one at a time."""
    asked = f"two seconds after the last free, at most {BAR} times what is live and what was resident at the start."
    section = Section("back", "Memory that goes back after a peak", asked)
    everyone = [DEFAULT, POOL] if quick else [DEFAULT, POOL, *peers()]
    table = Table(
        f"**MiB that are resident {WAIT:g} s after the last free**, all processes together",
        ["report", "start", "live", "peak", *("firsttouch run" if one == POOL else one.name for one in everyone)],
    )
    passed: list[str] = []
    failed: list[str] = []
    for name in ("numpy#18358", "numpy#15498") if quick else PROGRAMS:
        package = name.partition("#")[0].replace("arrow", "pyarrow").replace("cpython", "json")
        if importlib.util.find_spec(package) is None:
            section.notes.append(f"{name}: {package} is not installed.")
            continue
        found = {one.name: [_measured(name, environment(one)) for _ in range(1 if quick else RUNS)] for one in everyone}
        section.raw[name] = found

        def middle(contender: str, key: str, found: dict[str, list[dict[str, float]]] = found) -> float:
            return float(np.median([reply[key] for reply in found[contender]]))

        plain = [middle(DEFAULT.name, key) / MIB for key in ("start", "live", "peak")]
        left = [middle(one.name, "left") / MIB for one in everyone]
        table.rows.append([name, *(f"{value:,.0f}" for value in (*plain, *left))])
        ratio = middle(POOL.name, "left") / (middle(POOL.name, "live") + middle(POOL.name, "start"))
        (passed if ratio <= BAR else failed).append(f"{name} {ratio:.2f}")
    section.tables.append(table)
    _serve(section, quick)
    figure = f"{len(passed)} of {len(passed) + len(failed)}" + (f"; not {', '.join(failed)}" if failed else "")
    section.verdicts.append(Verdict(f"at most {BAR} of live and start", figure, "failed" if failed else "passed"))
    return section


def _serve(section: Section, quick: bool) -> None:
    """Compare a service that gives back what glibc keeps with one that does not, in turns."""
    seconds, variables = ("1" if quick else "30"), environment(DEFAULT)
    pairs = [
        [_measured("service", variables, trims, seconds) for trims in ("", "trims")] for _ in range(2 if quick else 8)
    ]
    section.raw["service"] = pairs
    ratios = np.array([trimmed["seconds"] / kept["seconds"] for kept, trimmed in pairs])
    section.verdicts.append(judge("a service: processor time at most 1 % more", SLOWER, {"service": ratios}))
    grown = max(trimmed["grown"] for _, trimmed in pairs)
    outcome = "passed" if grown <= GROWN else "failed"
    section.verdicts.append(Verdict("a service: it does not grow", f"at most {grown:.3f} times", outcome))


def _measured(name: str, variables: dict[str, str], *words: str) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.experiments.back", name, *words]
    said = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
    reply: dict[str, float] = json.loads(said.splitlines()[-1])
    return reply


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    found = service(bool(words[0]), float(words[1])) if name == "service" else measure(name, *map(float, words))
    print(json.dumps(found), flush=True)

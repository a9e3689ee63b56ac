"""Six figures that no change may make worse, of two wheels in one run: `python -m benchmarks.guards BEFORE AFTER`.

Small arrays that are kept, `a + b`, `np.roll`, the demonstration, the whole programs with their peak of resident
memory, and the time to import. Every figure is measured in fresh processes, with both wheels and with the first one
again, in shuffled order, round by round; cells are medians of the ratios by round with their 95 % intervals. *Again*
is the equal pair: it shows what cannot be distinguished. A figure is worse if its whole interval lies more than 2 %
above both 1 and the equal pair.

BEFORE and AFTER are wheels, or folders of environments in which NumPy and firsttouch are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "target" / "guards"
MARGIN = 1.02
SECONDS = 0.05
#: Where the C library places small blocks makes their first use up to a fifth slower, whatever allocator arrays have.
#: What is kept between two measurements shifts them, and the mean is the figure.
PLACEMENTS = 13
SIZES = {"64 KiB": 64 << 10, "1 MiB": 1 << 20, "16 MiB": 16 << 20}
KEPT = {"up to 1 KiB": (16, 1 << 10), "up to 64 KiB": (1 << 10, 64 << 10), "up to 256 KiB": (16 << 10, 256 << 10)}


# ---- What runs in a process with one of the wheels: it uses nothing but NumPy and `install` -------------------------


def _median_seconds(call: object) -> float:
    assert callable(call)
    clock = time.perf_counter
    times: list[float] = []
    end = clock() + SECONDS
    while len(times) < 5 or clock() < end:
        start = clock()
        result = call()
        del result
        times.append(clock() - start)
    return sorted(times[1:])[len(times[1:]) // 2]


def figures() -> dict[str, float]:
    """Return the seconds of the small guards in this process."""
    import numpy as np

    import firsttouch

    firsttouch.install()
    found: dict[str, float] = {}
    for name, (low, high) in KEPT.items():
        sizes = np.random.default_rng(1).integers(low, high, size=min(40_000, (256 << 20) // (low + high))).tolist()
        times, shifts = [], []
        for _ in range(PLACEMENTS):
            start, kept = time.process_time(), []
            for size in sizes:
                array = np.empty(size, np.uint8)
                array.fill(1)
                kept.append(array)
            times.append(time.process_time() - start)
            del kept, array
            shifts.append([bytes(200 + i * 37 % 900) for i in range(150)])
        found[f"kept arrays, {name}"] = sum(times[1:]) / (PLACEMENTS - 1)
    for name, size in SIZES.items():
        a, b = np.full(size // 8, 1.5), np.full(size // 8, 2.5)
        found[f"a + b, {name}"] = _median_seconds(lambda a=a, b=b: a + b)
        found[f"np.roll, {name}"] = _median_seconds(lambda a=a: np.roll(a, 1))
    return found


def program(name: str) -> dict[str, float]:
    """Return the seconds of a whole program, and its peak of resident memory."""
    import importlib
    import resource

    run = importlib.import_module(f"benchmarks.programs.{name}").run
    import firsttouch

    firsttouch.install()
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    return {f"{name}, time": seconds, f"{name}, peak": float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)}


# ---- The process that compares --------------------------------------------------------------------------------------


def environment(given: Path, name: str) -> Path:
    """Return the Python of an environment, or of a new one with a wheel and everything that is installed here."""
    if given.is_dir():
        return given / "bin" / "python"
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    with zipfile.ZipFile(given) as wheel:
        wheel.extractall(packages)
    for data in packages.glob("*.data/purelib/*"):
        data.rename(packages / data.name)
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return folder / "bin" / "python"


def run_in(python: Path, words: list[str]) -> tuple[float, str]:
    """Return the seconds of a process, and what it printed."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("FIRSTTOUCH", "MALLOC_", "PYTHON"))}
    clean |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLCONFIGDIR": str(WORK / "matplotlib")}
    start = time.perf_counter()
    done = subprocess.run([python, *words], cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{python} {' '.join(words)} ended with status {done.returncode}:\n{done.stderr[-3000:]}")
    return seconds, done.stdout


def measured(python: Path, guard: str) -> dict[str, float]:
    """Return the figures of one guard in one environment."""
    if guard == "import":
        return {"import numpy, firsttouch": run_in(python, ["-c", "import numpy, firsttouch"])[0]}
    if guard == "demo":
        return {"demo/terrain.py": run_in(python, ["-m", "firsttouch", "run", "-q", "demo/terrain.py"])[0]}
    found: dict[str, float] = json.loads(run_in(python, ["-m", "benchmarks.guards", "--in-process", guard])[1])
    return found


def compare(pythons: dict[str, Path], guards: list[str], rounds: int) -> list[str]:
    """Measure round by round, print the table, and return what became worse."""
    shuffle = random.Random(0)
    rows: dict[str, dict[str, list[float]]] = {}
    for turn in range(rounds + 1):  # the first one fills the file cache
        print(f"   round {turn} of {rounds}", file=sys.stderr, flush=True)
        for guard in guards:
            for who in shuffle.sample(list(pythons), len(pythons)):
                for name, value in measured(pythons[who], guard).items():
                    if turn:
                        rows.setdefault(name, {}).setdefault(who, []).append(value)
    from firsttouch.tools.measuring.statistics import estimate

    worse = []
    print(f"{'':<34}{'before':>12}  {'after / before':<22}{'again / before':<22}")
    for name, row in rows.items():
        after, again = (
            estimate([mine / base for mine, base in zip(row[who], row["before"], strict=True)])
            for who in ("after", "again")
        )
        middle = sorted(row["before"])[rounds // 2]
        figure = f"{middle / 1024:,.0f} MiB" if name.endswith("peak") else f"{middle * 1e3:,.3f} ms"
        bad = after.low > MARGIN * max(1.0, again.high)
        print(f"{name:<34}{figure:>12}  {after!s:<22}{again!s:<22}{'WORSE' if bad else ''}", flush=True)
        worse += [name] * bad
    return worse


def main() -> int:
    """Compare two wheels."""
    if sys.argv[1:2] == ["--in-process"]:
        print(json.dumps(figures() if sys.argv[2] == "small" else program(sys.argv[2])))
        return 0
    from benchmarks.programs import NAMES

    every = ["small", "import", "demo", *NAMES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guards", description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="*", choices=every, default=every, help="guards to measure (default: all)")
    given = parser.parse_args()
    before = environment(given.before, "before")
    pythons = {"before": before, "after": environment(given.after, "after"), "again": before}
    worse = compare(pythons, given.only, given.rounds)
    print(f"worse: {', '.join(worse)}" if worse else "no figure is worse beyond the noise and 2 %")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

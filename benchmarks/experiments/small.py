"""Small arrays, which `install()` leaves to NumPy: instructions under callgrind, and time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.measuring import AGAIN, Plan, Section, Verdict, collect, judge, median
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, Contender
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


FILLERS = 50  # few enough to be cheap, enough to average


def parts(loops: int) -> Iterator[range]:
    """Split the loops into parts, each with one more live array.

    The cost of an object in Python depends on whether it is the last in its block of objects; two programs that differ
    in their imports would differ by chance.
    """
    kept = []
    for _ in range(FILLERS):
        kept.append(np.empty(1))
        yield range(loops // FILLERS)


def empty(loops: int) -> None:
    """Call np.empty(8), which NumPy's small-block cache serves."""
    make = np.empty
    for part in parts(loops):
        for _ in part:
            make(8)


def add(loops: int) -> None:
    """Compute x + x on one element."""
    x = np.ones(1)
    for part in parts(loops):
        for _ in part:
            result = x + x
            del result


def zeros(loops: int) -> None:
    """np.zeros(100)."""
    make = np.zeros
    for part in parts(loops):
        for _ in part:
            make(100)


STATEMENTS = {"np.empty(8)": empty, "x + x": add, "np.zeros(100)": zeros}


def measure(loops: int) -> dict[str, float]:
    """Return seconds per iteration of each statement: the fastest of five short loops, to exclude interruptions."""
    result: dict[str, float] = {}
    for name, statement in STATEMENTS.items():
        times: list[float] = []
        for _ in range(5):
            start = time.perf_counter()
            statement(loops)
            times.append((time.perf_counter() - start) / loops)
        result[name] = min(times)
    return result


def main(arguments: list[str]) -> None:
    """Run each statement as often as the counts say."""
    if "--install" in arguments:
        import firsttouch

        firsttouch.install()
        arguments.remove("--install")
    for statement, loops in zip(STATEMENTS.values(), arguments, strict=True):
        statement(int(loops))


# ---- The experiment


INSTRUCTIONS, TIME = 20, 1.03


def collected(contender: Contender, counts: tuple[int, ...]) -> int:
    """Return the instructions that a whole run takes under callgrind."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    program = [sys.executable, "-m", "benchmarks.experiments.small", *map(str, counts)]
    program += ["--install"] if contender.install else []
    fixed = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}  # exclude randomness
    environment = {**contender.full_environment(), **fixed}
    done = subprocess.run(tool + program, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"callgrind counted nothing:\n{done.stderr[-2000:]}")
    return int(found[1])


def instructions(loops: int) -> dict[str, dict[str, float]]:
    """Return instructions per iteration: a run with twice the iterations of one statement, minus a run without."""
    base = tuple(loops for _ in STATEMENTS)
    runs = [base, *(tuple(loops * (1 + (i == j)) for j in range(len(base))) for i in range(len(base)))]
    result: dict[str, dict[str, float]] = {}
    with ThreadPoolExecutor(2) as threads:
        futures = {
            contender.name: [threads.submit(collected, contender, counts) for counts in runs]
            for contender in (NUMPY, FIRSTTOUCH)
        }
    for name, done in futures.items():
        first, *others = [future.result() for future in done]
        result[name] = {s: (other - first) / loops for s, other in zip(STATEMENTS, others, strict=True)}
    return result


def run(quick: bool) -> Section:
    """Count, then time."""
    section = Section(
        "small",
        "Small arrays under install()",
        f"at most {INSTRUCTIONS} instructions more than plain NumPy, and {TIME} times its time.",
    )
    if shutil.which("valgrind"):
        counted = instructions(2_000 if quick else 20_000)
        table = Table("**Instructions per iteration**", ["statement", "NumPy", "firsttouch", "more"])
        more = {name: counted["firsttouch"][name] - counted["NumPy"][name] for name in STATEMENTS}
        for name in STATEMENTS:
            row = [f"{counted[who][name]:,.1f}" for who in ("NumPy", "firsttouch")]
            table.rows.append([f"`{name}`", *row, f"{more[name]:+.1f}"])
        section.tables.append(table)
        most = max(more.values())
        outcome = "passed" if most <= INSTRUCTIONS else "failed"
        bar = f"at most {INSTRUCTIONS} instructions more"
        section.verdicts.append(Verdict(bar, f"{most:+.1f} at the most", outcome))
        section.raw["instructions"] = counted
    else:
        section.verdicts.append(Verdict("instructions", "valgrind is not installed", "not measured"))
    call = Call("benchmarks.experiments.small", "measure", {"loops": 2_000 if quick else 20_000})
    samples = collect([NUMPY, FIRSTTOUCH, AGAIN], call, Plan(2 if quick else 30, 1))
    section.raw["time"] = samples.replies
    table = Table("**Time**", ["statement", "NumPy", "firsttouch / NumPy", "firsttouch / firsttouch again"])
    cells = {name: samples.ratio(FIRSTTOUCH, NUMPY, name) for name in STATEMENTS}
    for name in STATEMENTS:
        again = median(samples.ratio(FIRSTTOUCH, AGAIN, name))
        nanoseconds = median(samples.column(NUMPY, name)).value * 1e9
        table.rows.append([f"`{name}`", f"{nanoseconds:.1f} ns", str(median(cells[name])), str(again)])
    section.tables.append(table)
    section.verdicts.append(judge(f"at most {TIME} times plain NumPy's time", TIME, cells))
    return section


if __name__ == "__main__":
    main(sys.argv[1:])

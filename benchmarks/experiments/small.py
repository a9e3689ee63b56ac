"""Small arrays, which `install()` leaves to NumPy: instructions under callgrind, and time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.tasks.small import STATEMENTS
from firsttouch.tools.measuring.contenders import AGAIN, FIRSTTOUCH, NUMPY, Contender
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import Verdict, judge, median

INSTRUCTIONS, TIME = 20, 1.03


def collected(contender: Contender, counts: tuple[int, ...]) -> int:
    """Return the instructions that a whole run takes under callgrind."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    program = [sys.executable, "-m", "benchmarks.tasks.small", *map(str, counts)]
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
    call = Call("benchmarks.tasks.small", "measure", {"loops": 2_000 if quick else 20_000})
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

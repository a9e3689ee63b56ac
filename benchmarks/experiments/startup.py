"""The time that `import firsttouch` and `firsttouch run` add to `import numpy`, and that `install()` takes."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import numpy as np

from benchmarks.measuring import NUMPY, Column, Section, Verdict, median
from firsttouch.tools.measuring.contenders import environment
from firsttouch.tools.measuring.processes import ask
from firsttouch.tools.measuring.report import Table
from firsttouch.tools.measuring.statistics import Estimate

IMPORT, INSTALL = 15.0, 1.0  # milliseconds
PROGRAMS = {
    "import numpy": ["-c", "import numpy"],
    "import numpy, again": ["-c", "import numpy"],
    "import numpy, firsttouch": ["-c", "import numpy, firsttouch"],
    "import numpy under firsttouch run": ["-m", "firsttouch", "run", "-q", "-c", "import numpy"],
}


def whole(words: list[str]) -> float:
    """Return the milliseconds that a whole process takes."""
    variables = environment(NUMPY)
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], env=variables, check=True)
    return (time.perf_counter() - start) * 1e3


def install() -> float:
    """Return the milliseconds that `install` takes in a process that has imported the package."""
    import firsttouch

    start = time.perf_counter()
    firsttouch.install(trim_c_library=True)
    return (time.perf_counter() - start) * 1e3


def verdict(bar: str, limit: float, estimate: Estimate) -> Verdict:
    """Judge a bar, as `judge` does, for milliseconds."""
    outcome = "passed" if estimate.high <= limit else "failed" if estimate.low > limit else "not shown"
    return Verdict(bar, f"{estimate} ms", outcome)


def run(quick: bool) -> Section:
    """Measure whole processes in shuffled order, then the time that workers took to install."""
    section = Section(
        "startup",
        "Starting",
        f"`import firsttouch` adds at most {IMPORT:g} ms to `import numpy`; `install()` takes at most {INSTALL:g} ms.",
    )
    shuffle = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for turn in range(3 if quick else 31):
        for name in shuffle.sample(list(PROGRAMS), len(PROGRAMS)):
            took = whole(PROGRAMS[name])
            if turn:  # the first iteration fills the file cache
                times[name].append(took)
    columns: dict[str, Column] = {name: np.array(row) for name, row in times.items()}
    plain, again, ours, started = (columns[name] for name in PROGRAMS)
    installs: list[float] = [ask(NUMPY, install) for _ in range(3 if quick else 31)]
    installing = median(np.array(installs))
    table = Table("", ["what", "milliseconds"])
    table.rows += [(f"`{name}`, whole process", str(median(column))) for name, column in columns.items()]
    table.rows.append(("difference between two equal programs", str(median(again - plain))))
    table.rows.append(("time added by `import firsttouch`", str(median(ours - plain))))
    table.rows.append(("time added by `firsttouch run`", str(median(started - plain))))
    table.rows.append(("`install()`", str(installing)))
    section.tables.append(table)
    section.verdicts.append(verdict(f"import adds at most {IMPORT:g} ms", IMPORT, median(ours - plain)))
    section.verdicts.append(verdict(f"install() takes at most {INSTALL:g} ms", INSTALL, installing))
    section.raw = {"whole": times, "install": installs}
    return section

"""Run random programs until the time is up, and shrink what fails."""

from __future__ import annotations

import argparse
import math
import mmap
import os
import signal
import sys
import time

from tests.trust.campaign import campaign
from tests.trust.conditions import checks
from tests.trust.program import LENGTH, program


def one(seed: int, count: int, chosen: set[int] | None, progress: str | None, until: float) -> int:
    """Run the program of one seed; the last line says how many steps it had."""
    if "PYTHONMALLOC" not in os.environ and (mode := checks(seed)):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONMALLOC": mode})
    if progress is None:
        print(program(seed, count, chosen, until=until))
        return 0
    with open(progress, "r+b") as file, mmap.mmap(file.fileno(), 8) as memory:  # survives a crash
        print(program(seed, count, chosen, lambda number: memory.__setitem__(slice(0, 8), number), until))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__)
    parser.add_argument("--seconds", type=float, help="how long to look for failures; without it, one seed is run")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first seed (default: the time)")
    parser.add_argument("--every", type=int, default=1, help="go on by so many seeds: 4 runs programs of one kind")
    parser.add_argument("--steps", type=int, default=LENGTH, help=f"steps of each program (default: {LENGTH:,})")
    parser.add_argument("--only", metavar="N,N-N...", help="the numbers of the steps to run")
    parser.add_argument("--shrink", type=float, default=300, help="seconds to look for fewer steps (default: 300)")
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=math.inf, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.seconds is None:
        runs = [[int(end) for end in run.split("-")] for run in given.only.split(",")] if given.only else []
        only = {step for run in runs for step in range(run[0], run[-1] + 1)} or None
        return one(given.seed, given.steps, only, given.progress, given.until)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # as of `timeout`: the programs end, too
    done = campaign(given.seconds, range(given.seed, sys.maxsize, given.every), given.steps, given.shrink)
    found = f"failed: seeds {', '.join(map(str, done.failed))}" if done.failed else "nothing"
    hours = sum(os.times()[2:4]) / 3600
    did = f"{done.programs:,} programs, {done.steps:,} steps, {hours:.2f} processor-hours"
    print(f"{did}, in {done.seconds:.0f} s from seed {given.seed} on; found: {found}")
    return 1 if done.failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run random programs until the time is up, and shrink what fails.

usage: python -m tests.trust [--seconds 60] [--seed N] [--steps 300] [--only N,N,...]
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import subprocess
import sys
import time
import traceback
from pathlib import Path
from random import Random

from firsttouch import _firsttouch
from tests.trust.steps import STEPS, World

ROOT = Path(__file__).parents[2]
TIMEOUT = 600
"""Seconds after which a program counts as hanging."""


def conditions(random: Random) -> None:
    """Make the machine a different one, now and then: few places for segments, or no huge pages."""
    if random.random() < 0.2:
        _firsttouch.shrink_slots(random.choice((0, 1, 4)))
    if random.random() < 0.2:
        ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE


def program(seed: int, count: int, only: set[int] | None) -> None:
    """Run the steps of a seed, or some of them; each has its own random numbers, whatever ran before."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(TIMEOUT - 30)
    world, plan = World(), Random(seed)
    conditions(plan)
    for number in range(count):
        step, own = plan.choice(STEPS), Random(plan.randrange(1 << 60))
        if only is not None and number not in only:
            continue
        try:
            step(world, own)
            world.check()
        except BaseException as error:
            traceback.print_exc()
            sys.exit(f"step {number}, {step.__name__}: {type(error).__name__}: {error}")


def failure(seed: int, count: int, only: list[int] | None = None) -> str | None:
    """Return what a program said before it failed, or ``None``."""
    chosen = [] if only is None else ["--only", ",".join(map(str, only))]
    command = [sys.executable, "-m", "tests.trust", "--seed", str(seed), "--steps", str(count), *chosen]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT)
    except subprocess.TimeoutExpired as expired:
        return f"it hangs\n{(expired.stderr or b'').decode(errors='replace')}"
    return None if done.returncode == 0 else f"exit status {done.returncode}\n{done.stderr[-3000:]}"


def shrunk(seed: int, count: int, seconds: float) -> list[int]:
    """Return fewer steps with which the program still fails."""
    end, steps, part = time.monotonic() + seconds, list(range(count)), count // 2
    while part:
        for start in range(0, len(steps), part):
            fewer = steps[:start] + steps[start + part :]
            if fewer and time.monotonic() < end and failure(seed, count, fewer):
                steps = fewer
                break
        else:
            part //= 2
    return steps


def campaign(seconds: float, first: int, count: int) -> int:
    """Run seed after seed; return the exit status."""
    began, programs = time.monotonic(), 0
    while not programs or time.monotonic() - began < seconds:
        seed = first + programs
        programs += 1
        found = failure(seed, count)
        if found:
            print(f"seed {seed}: {found}\nLooking for fewer steps ...", flush=True)
            steps = shrunk(seed, count, 300)
            print(f"python -m tests.trust --seed {seed} --steps {count} --only {','.join(map(str, steps))}")
            return 1
    spent = time.monotonic() - began
    print(f"{programs} programs of {count} steps from seed {first} on, in {spent:.0f} s: nothing found")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, help="how long to look for failures; without it, one seed is run")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first seed (default: the time)")
    parser.add_argument("--steps", type=int, default=300, help="steps of each program")
    parser.add_argument("--only", help="the numbers of the steps to run")
    given = parser.parse_args()
    if given.seconds is not None:
        return campaign(given.seconds, given.seed, given.steps)
    program(given.seed, given.steps, None if given.only is None else set(map(int, given.only.split(","))))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Seed after seed, each in a process of its own; what fails is shrunk to a script."""

from __future__ import annotations

import dataclasses
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.trust.program import TIMEOUT, planned

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "target" / "trust"


@dataclasses.dataclass
class Ended:
    """How a program ended: what it said if it failed, its steps, and the last one that it began."""

    failure: str | None
    steps: int = 0
    last: int = -1


def run(seed: int, count: int, only: list[int] | None = None) -> Ended:
    """Run a program in a process of its own."""
    chosen = [] if only is None else ["--only", ",".join(map(str, only))]
    with tempfile.NamedTemporaryFile() as progress:
        progress.write(struct.pack("q", -1))
        progress.flush()
        command = [sys.executable, "-m", "tests.trust", "--seed", str(seed), "--steps", str(count)]
        command += ["--progress", progress.name, *chosen]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT, errors="replace")
        except subprocess.TimeoutExpired as expired:
            said = (expired.stderr or b"").decode(errors="replace")[-5000:]
            failure: str | None = f"it hangs\n{said}"
        else:
            if done.returncode == 0:
                return Ended(None, int(done.stdout.split()[-1]))
            failure = f"exit status {done.returncode}\n{done.stderr[-5000:]}"
        progress.seek(0)
        return Ended(failure, 0, struct.unpack("q", progress.read(8))[0])


def shrunk(seed: int, count: int, last: int, seconds: float) -> list[int]:
    """Return fewer steps with which the program still fails: first those up to the last one, then without parts."""
    end, steps = time.monotonic() + seconds, list(range(last + 1))
    if not run(seed, count, steps).failure:
        return list(range(count))  # it does not fail every time
    part = len(steps) // 2
    while part:
        start = 0
        while start < len(steps) and time.monotonic() < end:
            fewer = steps[:start] + steps[start + part :]
            ended = run(seed, count, fewer) if fewer else Ended(None)
            if ended.failure:
                steps = [each for each in fewer if each <= ended.last]
            else:
                start += part
        part = min(part // 2, len(steps) // 2) if time.monotonic() < end else 0
    return steps


def script(seed: int, count: int, steps: list[int], failure: str) -> Path:
    """Write a script that repeats a failure, and return its path."""
    called = [f"    {number},  # {step.__name__}" for number, step, _ in planned(seed, count) if number in set(steps)]
    said = "\n".join(f"# {line}" for line in failure.strip().splitlines()[-12:])
    text = [f"# To be run from the root of the checkout: python {SCRIPTS.name}/seed-{seed}.py", said, "import sys", ""]
    text += [f"sys.path.insert(0, {str(ROOT)!r})", "from tests.trust.program import program", ""]
    text += ["STEPS = {", *called, "}", f"program({seed}, {count}, STEPS)", ""]
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    path = SCRIPTS / f"seed-{seed}.py"
    path.write_text("\n".join(text), encoding="utf-8")
    return path


@dataclasses.dataclass
class Campaign:
    """What a campaign did."""

    programs: int
    steps: int
    seconds: float
    failed: list[int]


def campaign(seconds: float, first: int, count: int, shrink: float, go_on: bool) -> Campaign:
    """Run seed after seed until the time is up or, unless told to go on, one fails."""
    began, done = time.monotonic(), Campaign(0, 0, 0, [])
    while not done.programs or time.monotonic() - began < seconds:
        seed = first + done.programs
        ended = run(seed, count)
        done.programs += 1
        done.steps += ended.steps
        done.seconds = time.monotonic() - began
        if ended.failure:
            done.failed.append(seed)
            print(f"seed {seed}, after {done.seconds:.0f} s and {done.steps} steps: {ended.failure}", flush=True)
            steps = shrunk(seed, count, ended.last, shrink) if shrink else list(range(ended.last + 1))
            print(f"{len(steps)} steps are left in {script(seed, count, steps, ended.failure)}", flush=True)
            if not go_on:
                break
    return done

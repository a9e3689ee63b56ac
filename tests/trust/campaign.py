"""Seed after seed, each in a process of its own; what fails is shrunk to few steps."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import itertools
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
HANGS = 150
"""Seconds after which a step counts as hanging; those that wait for children do so for less."""
_given_up = threading.Event()
"""Set when the campaign is interrupted: programs have sessions of their own, where no Ctrl-C reaches them."""


@dataclasses.dataclass
class Ended:
    """How a program ended: what it said if it failed, its steps, and the last one that it began."""

    failure: str | None
    steps: int = 0
    last: int = -1


def run(seed: int, count: int, only: list[int] | None = None, until: float | None = None) -> Ended:
    """Run a program in a process of its own, which ends at its next step when the monotonic clock reaches `until`."""
    chosen = [] if only is None else ["--only", written(only)]
    chosen += [] if until is None else ["--until", str(until)]
    with tempfile.NamedTemporaryFile() as progress, tempfile.TemporaryFile("w+", errors="replace") as said:
        progress.write(struct.pack("q", -1))
        progress.flush()
        command = [sys.executable, "-m", "tests.trust", "--seed", str(seed), "--steps", str(count)]
        command += ["--progress", progress.name, *chosen]
        child = subprocess.Popen(command, stdout=said, stderr=said, cwd=ROOT, start_new_session=True)
        try:
            hangs = _waits_in_vain(child, progress)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # children, too, which may wait for ever
            child.wait()
        said.seek(0)
        text = said.read()
        if child.returncode == 0:
            return Ended(None, int(text.split()[-1]))
        how = "it hangs" if hangs else f"exit status {child.returncode}"
        return Ended(f"{how}\n{text[-5000:]}", 0, _step(progress))


def written(steps: list[int]) -> str:
    """Return ascending numbers as the command line takes them: 0-7,9; a command line is limited."""
    runs = [list(run) for _, run in itertools.groupby(enumerate(steps), lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0][1]}-{run[-1][1]}" if run[1:] else str(run[0][1]) for run in runs)


def _step(progress: IO[bytes]) -> int:
    progress.seek(0)
    return int(struct.unpack("q", progress.read(8))[0])


def _waits_in_vain(child: subprocess.Popen[bytes], progress: IO[bytes]) -> bool:
    """Wait for a program; if one of its steps takes too long, have it say where it is, and return true."""
    step, since = -1, time.monotonic()
    while True:
        try:
            child.wait(1)
        except subprocess.TimeoutExpired:
            if _given_up.is_set():
                raise concurrent.futures.CancelledError from None
            if (now := _step(progress)) != step:
                step, since = now, time.monotonic()
            elif time.monotonic() - since > HANGS:
                child.send_signal(signal.SIGABRT)  # faulthandler prints the stacks of all threads
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(10)
                return True
        else:
            return False


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


@dataclasses.dataclass
class Campaign:
    """What a campaign did."""

    programs: int
    steps: int
    seconds: float
    failed: list[int]


def campaign(seconds: float, seeds: range, count: int, shrink: float) -> Campaign:
    """Run seed after seed until the time is up or one fails.

    As programs wait now and then, one more runs than there are processors.
    """
    began, done, turn, stop = time.monotonic(), Campaign(0, 0, 0, []), threading.Lock(), threading.Event()

    def work() -> None:
        while not stop.is_set() and (not done.programs or time.monotonic() - began < seconds):
            with turn:
                seed = seeds[done.programs]
                done.programs += 1
            ended = run(seed, count, until=began + seconds)
            with turn:
                done.steps += ended.steps or ended.last
                done.seconds = time.monotonic() - began
            if ended.failure:
                done.failed.append(seed)
                stop.set()
                _tell(seed, count, ended, f"after {done.seconds:.0f} s and {done.steps} steps", shrink)

    workers = len(os.sched_getaffinity(0)) + 1
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            for worker in [pool.submit(work) for _ in range(workers)]:
                worker.result()
        except BaseException:  # with a failure of our own, too, the others would go on until the time is up
            _given_up.set()
            raise
    return done


def _tell(seed: int, count: int, ended: Ended, when: str, shrink: float) -> None:
    print(f"seed {seed}, {when}: {ended.failure}", flush=True)
    steps = shrunk(seed, count, ended.last, shrink) if shrink else list(range(ended.last + 1))
    again = f"python -m tests.trust --seed {seed} --steps {count} --only {written(steps)}"
    print(f"{len(steps)} steps are left: {again}", flush=True)

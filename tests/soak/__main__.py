"""Run for a given time, sample, and say whether anything rises."""

from __future__ import annotations

import argparse
import pickle
import resource
import sys
import time
from random import Random

import firsttouch as ft
from tests.soak.trend import report, sample
from tests.trust.steps import ALONE, owners, scopes
from tests.trust.steps.processes import Together
from tests.trust.world import World

FOR_EVER = (owners.swapped, scopes.install, scopes.suspended)
"""Steps after which something is kept for ever: blocks whose allocator is gone, allocators that were installed, default
buffers of a thread that nobody leaves."""
STEPS = [step for step in ALONE if step not in FOR_EVER]
TURN = 200
"""Steps."""


def turn(random: Random) -> None:
    """What services do, in any order, by itself, in threads and in a child; it begins and ends with the same arrays."""
    world, together = World(), Together(STEPS)
    if random.random() < 0.5:
        ft.install()
    try:
        together.some(world, random, TURN)
        together.threads(world, random)
        together.fork(world, random)
    except MemoryError:
        print(ft.last_failure(), flush=True)
        raise
    ft.uninstall()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for _ in range(512):  # handles that nobody opens hold files, up to a part of the limit
        pickle.dumps(ft.shared(1))
    random, turns, began = Random(given.seed), 0, time.monotonic()
    samples: list[tuple[float, ...]] = []
    every = given.seconds / 200
    while (now := time.monotonic() - began) < given.seconds or len(samples) < 10:
        turn(random)
        turns += 1
        if now >= every * len(samples):
            samples.append(sample())
    rising = report(samples)
    ends = f"{min(each[0] for each in samples):.0f} to {max(each[0] for each in samples):.0f} MiB resident"
    did = f"{turns:,} turns from seed {given.seed}, {len(samples)} samples, {ends}"
    found = f"rising: {', '.join(rising)}" if rising else "nothing rises"
    print(f"{did}: {found}")
    return 1 if rising else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs terrain.py plainly and under `firsttouch run` alternately, and shows the cost of both.

The two must print the same, byte for byte. The first run of each is not counted: it fills the file cache. All figures
are the kernel's, for finished processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from firsttouch.tools.measuring.processes import Run, once

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = Path(__file__).resolve().with_name("terrain.py")
PLAIN = "python"
POOLED = "firsttouch run"
ENOUGH = 5  # fewer rounds agree too often by chance


class CommandError(Exception):
    """A command that failed; the message contains its output."""


def commands(report: Path) -> dict[str, list[str]]:
    """Return the command of each way; firsttouch writes its report to a file."""
    pooled = ["-m", "firsttouch", "run", "--quiet", "--json", str(report)]
    return {PLAIN: [sys.executable, str(PROGRAM)], POOLED: [sys.executable, *pooled, str(PROGRAM)]}


def environment() -> dict[str, str]:
    """Return the caller's environment without firsttouch's part, and with one place for matplotlib's caches."""
    kept = {name: value for name, value in os.environ.items() if name != "FIRSTTOUCH_RUN"}
    return {**kept, "MPLCONFIGDIR": str(Path(sys.prefix) / "matplotlib")}


def run(command: Sequence[str], folder: Path) -> tuple[str, Run]:
    """Return what the command printed, and what the kernel counted of it and its children."""
    out, err = folder / "out", folder / "err"
    cost = once(command, environment(), os.devnull, str(out), str(err))
    if cost.status != 0:
        raise CommandError(f"{' '.join(command)} {cost.ended}:\n{err.read_text(errors='replace')}")
    return out.read_text(), cost


def check_pooled(report: Path) -> None:
    """Raise if a run did not use the pool, because its cost would appear under the wrong name."""
    said = json.loads(report.read_text())
    report.unlink()
    if not said["pooled"]:
        raise CommandError(f"{POOLED} ran without the pool: {said['not_pooled_because']}")


def measure(rounds: int) -> tuple[dict[str, set[str]], dict[str, list[Run]]]:
    """Return what each way printed and cost; the order changes from round to round."""
    printed: dict[str, set[str]] = {PLAIN: set(), POOLED: set()}
    costs: dict[str, list[Run]] = {PLAIN: [], POOLED: []}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        for number in range(rounds + 1):
            ways = list(commands(report).items())
            for way, command in ways if number % 2 else reversed(ways):
                say(f"round {number} of {rounds}: {way}" if number else f"to fill the file cache, not counted: {way}")
                text, cost = run(command, Path(folder))
                printed[way].add(text)
                if way == POOLED:
                    check_pooled(report)
                if number > 0:
                    costs[way].append(cost)
            if number < rounds:
                each = (time.monotonic() - began) / (number + 1)
                say(f"about {each * (rounds - number):.0f} s left")
    say("")
    return printed, costs


def say(text: str) -> None:
    """Show the progress on standard error: on one line of a terminal, elsewhere as a line each."""
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def table(costs: dict[str, list[Run]]) -> str:
    """Return the medians of each way, one line each."""
    head = f"{'time':>9}{'processor time':>18}{'in the kernel':>17}{'page faults':>15}{'peak memory':>15}"
    lines = [" " * 16 + head]
    for way, runs in costs.items():
        names = ("wall", "processor", "system", "minor_faults", "peak_bytes")
        wall, processor, kernel, faults, peak = (median(getattr(run, name) for run in runs) for name in names)
        times = f"{wall:7.2f} s{processor:16.2f} s{kernel:15.2f} s"
        lines.append(f"{way:16}{times}{faults:15,.0f}{peak / 2**20:11.0f} MiB")
    return "\n".join(lines)


def verdict(costs: dict[str, list[Run]]) -> str:
    """Return one sentence: the ratio of adjacent runs, without claiming a gain if the rounds disagree."""
    pairs = zip(costs[PLAIN], costs[POOLED], strict=True)
    ratios = sorted(plain.wall / pooled.wall for plain, pooled in pairs)
    middle_one = f"{median(ratios):.2f} times as fast"
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    if len(ratios) < ENOUGH:
        return f"Under firsttouch run: {middle_one} ({spread}); too few rounds to say more."
    if ratios[0] > 1:
        return f"Under firsttouch run the program is {middle_one} ({spread} in the rounds)."
    if ratios[-1] < 1:
        return f"Under firsttouch run the program is SLOWER: {middle_one} ({spread} in the rounds)."
    return f"The rounds disagree ({spread} times as fast): no difference is demonstrated."


def busy(costs: dict[str, list[Run]]) -> str:
    """Return a warning if the runs had to wait for a processor; the program uses one thread."""
    runs = [cost for way in costs.values() for cost in way]
    waited = sum(cost.wall for cost in runs) / sum(cost.processor for cost in runs)
    return f"\nThe machine was busy: runs took {waited:.1f} times their processor time." if waited > 1.2 else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, and print the table; return 1 if the two printed different things or a run failed."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="counted runs of each (default: %(default)s)")
    rounds = max(1, parser.parse_args(argv).rounds)
    try:
        printed, costs = measure(rounds)
    except CommandError as failure:
        print(failure, file=sys.stderr)
        return 1
    texts = set().union(*printed.values())
    if len(texts) != 1:
        for way, said in printed.items():
            print(f"--- {way}", *sorted(said), sep="\n")
        print("The two programs printed different output.", file=sys.stderr)
        return 1
    print(f"{PROGRAM.name} prints, plainly and under firsttouch run alike:\n")
    print(texts.pop())
    print(table(costs))
    print(f"\nMedians of {rounds} alternating runs of each. {verdict(costs)}{busy(costs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

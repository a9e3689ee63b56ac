"""Run the suites, compare, and print what differs."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.foreign.suites import ALLOCATORS, SUITES
from tests.numpy_suite.__main__ import differing
from tests.numpy_suite.runs import Crashed, Result, Run, chosen


def run(way: str, scratch: Path, tests: list[str]) -> Result:
    started = Run(way, scratch, tests)
    try:
        return started.finish()
    finally:
        started.stop()


def differences(package: str, scratch: Path) -> tuple[int, list[str]]:
    """Compare a package's tests under each allocator with a plain run; what differs must differ twice."""
    tests = chosen(SUITES[package])
    plain = run("plain", scratch / "plain", tests)
    print(f"{package:>10}  plainly: {plain.counts()}", flush=True)
    if "passed" not in plain.outcomes.values():
        return len(plain.outcomes), [f"{package}: its tests did not run"]
    found: list[str] = []
    for way in ALLOCATORS:
        folder = scratch / re.sub(r"\W", "", way)
        began = time.monotonic()
        try:
            other = differing(plain, run(way, folder, tests))
            if other and len(other) < 100:
                again = differing(
                    run("plain", folder / "p", chosen(list(other))), run(way, folder / "w", chosen(list(other)))
                )
                other = {name: end for name, end in other.items() if name in again}
        except Crashed as crash:
            found.append(f"{package} under {way}: {crash}")
            continue
        print(f"{'':>10}  {way}: {len(other)} different, {time.monotonic() - began:.0f} s", flush=True)
        found += [f"{name}: {plainly} plainly, {ours} under {way}" for name, (plainly, ours) in other.items()]
    return len(plain.outcomes), found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.add_argument("packages", nargs="*", default=list(SUITES), help="default: all")
    given, count, found = parser.parse_args(), 0, []
    there = [package for package in given.packages if importlib.util.find_spec(package)]
    with tempfile.TemporaryDirectory() as folder:
        for package in there:
            try:
                tests, different = differences(package, Path(folder) / package)
            except Crashed as crash:
                tests, different = 0, [f"{package}, plainly: {crash}"]
            count += tests
            found += different
    print(*found, sep="\n")
    if missing := sorted(set(given.packages) - set(there)):
        print(f"not installed: {', '.join(missing)}")
    did = f"{count:,} tests of {', '.join(there)}, plainly and under {', '.join(ALLOCATORS)}"
    print(f"{did}: {len(found)} different")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())

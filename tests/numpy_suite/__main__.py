"""`python -m tests.numpy_suite`: exit status 0 if every test ends as it does without firsttouch."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.numpy_suite.runs import SHARE, Crashed, Result, Run, chosen, modules

#: How often tests that ended differently run again, alone, before that counts.
RERUNS = 2


def differing(plain: Result, pooled: Result) -> dict[str, tuple[str, str]]:
    """Tests that did not end alike, with how they ended plainly and on pooled memory."""
    names = plain.outcomes.keys() | pooled.outcomes.keys()
    ends = {name: (plain.outcomes.get(name, "absent"), pooled.outcomes.get(name, "absent")) for name in names}
    return {name: end for name, end in sorted(ends.items()) if end[0] != end[1]}


def both(way: str, scratch: Path, tests: Sequence[str]) -> tuple[Result, Result]:
    """The same tests plainly and on pooled memory, at the same time in two processes."""
    runs = [Run("plain", scratch / "plain", tests), Run(way, scratch / way, tests)]
    try:
        plain, pooled = [run.finish() for run in runs]
    finally:
        for run in runs:
            run.stop()
    return plain, pooled


def compare(way: str, scratch: Path, tests: Sequence[str]) -> bool:
    """Run both, print what came of it; whether they agree."""
    began = time.monotonic()
    plain, pooled = both(way, scratch / "first", tests)
    print(f"plain:       {plain.counts()}")
    print(f"{way + ':':<12} {pooled.counts()}")
    arrays = pooled.pooled["allocations"]
    print(f"pooled:      {arrays} arrays, {pooled.pooled['recycled']} of them recycled")
    if "passed" not in plain.outcomes.values() or not arrays:
        print("NumPy's tests did not run, or not on pooled memory")
        return False
    open_ = differing(plain, pooled)
    for turn in range(RERUNS):
        if not open_:
            break
        print("to be run again:", *open_, sep="\n  ")
        again = differing(*both(way, scratch / f"again{turn}", chosen(list(open_))))
        for name in open_.keys() - again.keys():
            print(f"flaky: {name} ended {' and '.join(open_[name])}, and alike when run again")
        open_ = again
    for name, (first, second) in open_.items():
        print(f"DIFFERENT: {name}: {first} plainly, {second} under firsttouch")
    print(f"{len(plain.outcomes)} tests, {len(open_)} different, in {time.monotonic() - began:.0f} s")
    return not open_


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_suite", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FILE", help="only these, as numpy/ma/tests/test_core.py")
    parser.add_argument("--everything", action="store_true", help="pool arrays of every size, small ones too")
    parser.add_argument("--share", action="store_true", help="only the tests that make most arrays")
    parser.add_argument("--log", type=Path, metavar="FOLDER", help="keep what the runs wrote in a new folder")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    print(f"NumPy {np.__version__} on Python {sys.version.split()[0]}")
    for tool in ("meson", "ninja", "cc"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing: NumPy skips its tests of memory handlers")
    tests = chosen(SHARE if options.share else options.names) or modules()
    way = "everything" if options.everything else "install"
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return 0 if compare(way, options.log or Path(scratch), tests) else 1
        except Crashed as crash:
            print(crash)
            return 1


if __name__ == "__main__":
    raise SystemExit(main())

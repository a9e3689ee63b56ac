"""Take repairs out, one by one, and let the tester look for what they repaired."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.trust.campaign import ROOT
from tests.trust.record import duration, put
from tests.trust.repairs import copy

HERE = Path(__file__).parent
TABLE = ROOT / "docs" / "explanation" / "trust-repairs.csv"
HEAD = ("what goes wrong without the repair", "looked for by", "found after", "as", "last run")
SEED = 1
"""The seed of the first program, for all."""
FAILED = r"^seed (\d+), after [^:]*: (.*?)^(\d+) steps of seed \1 are left"
"""What a campaign says of a program that failed, with how many of its steps."""


def told(patch: Path) -> tuple[str, str]:
    """Return what goes wrong without a repair, and what looks for it."""
    lines = patch.read_text(encoding="utf-8").splitlines()[:2]
    return lines[0].removeprefix("What goes wrong: "), lines[1].removeprefix("Looked for by: ")


def python(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy, with what was built there, or in the checkout, with this environment."""
    binaries = copy.ENVIRONMENT / "bin" if where == copy.COPY else Path(sys.executable).parent
    environment = {name: value for name, value in os.environ.items() if name != "FIRSTTOUCH_TRUST_RECORD"}
    environment |= {"PATH": f"{binaries}:{os.environ['PATH']}"}
    return subprocess.run([binaries / "python", *words], cwd=where, env=environment, capture_output=True, text=True)


def sign(text: str) -> str:
    """Return in a few words how a program failed."""
    if "it hangs" in text:
        return "a hang"
    if status := re.search(r"exit status -(\d+)", text):
        return signal.Signals(int(status[1])).name
    raised = re.findall(r"^step \d+, (\w+): (\w+): (.*)", text, re.MULTILINE)
    return f"{raised[-1][1]} in {raised[-1][0]}: {raised[-1][2]:.60}" if raised else text.strip()[-60:]


def programs(seconds: float) -> tuple[str, str] | None:
    """Let random programs look; after how long they found something, and as what."""
    began, first = time.monotonic(), SEED
    while (left := seconds - (time.monotonic() - began)) > 0:
        words = ("-m", "tests.trust", "--seed", str(first), "--shrink", "0")
        done = python(copy.COPY, *words, "--seconds", str(left))
        found = re.search(FAILED, done.stdout, re.MULTILINE | re.DOTALL)
        after = time.monotonic() - began
        if not found:
            if "found: nothing" not in done.stdout:
                raise RuntimeError(f"the tester did not run: {done.stdout[-500:]}{done.stderr[-2000:]}")
            return None
        seed, failure, steps = int(found[1]), found[2], found[3]
        again = python(ROOT, "-m", "tests.trust", "--seed", str(seed), "--steps", steps)
        if not again.returncode:
            return f"{duration(after)}, in program {seed - SEED + 1}", sign(failure)
        how = f"exit status {again.returncode} {again.stderr[-500:]}"
        print(f"seed {seed} fails with the repair, too: {how}", flush=True)
        first = seed + 1
    return None


def tests(name: str) -> tuple[str, str] | None:
    """Let tests look."""
    words = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", name)
    began = time.monotonic()
    done = python(copy.COPY, *words)
    after = time.monotonic() - began
    failed = re.search(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    if not failed:
        if done.returncode:
            raise RuntimeError(f"the tests did not run: {done.stdout[-2000:]}")
        return None
    if python(ROOT, *words).returncode:
        raise RuntimeError(f"{name} fails with the repair, too")
    return duration(after), failed[1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.repairs", description=__doc__)
    parser.add_argument("names", nargs="*", help="the repairs to take out, in this order (default: all)")
    parser.add_argument("--seconds", type=float, default=600, help="how long to look for each (default: 600)")
    given = parser.parse_args()
    known = {patch.stem: patch for patch in sorted(HERE.glob("*.patch"))}
    for name in given.names:
        if name not in known:
            parser.error(f"unknown repair {name!r}: there are {', '.join(known)}")
    missed = []
    for patch in [known[name] for name in given.names or known]:
        copy.refresh()
        copy.apply(patch)
        copy.build()
        what, by = told(patch)
        found = programs(given.seconds) if by == "programs" else tests(by)
        after, how = found or (f"not in {duration(given.seconds)}", "")
        print(f"{patch.stem}: {after} {how}", flush=True)
        missed += [] if found else [patch.stem]
        if os.environ.get("FIRSTTOUCH_TRUST_RECORD"):
            put(TABLE, HEAD, (what, by, after, how, time.strftime("%Y-%m-%d")))
    copy.refresh()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

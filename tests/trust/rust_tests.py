"""Run tests of Rust, and record on the page on trust what they did.

usage: python -m tests.trust.rust_tests PART COMMAND...
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

from tests.trust.record import record

COUNTS = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)


def said(output: str, status: int) -> tuple[str, str]:
    """Return how many tests ran, and what they found: a sanitizer ends the program where it objects."""
    counts = [tuple(map(int, each)) for each in COUNTS.findall(output)]
    passed, failed, ignored = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    left_out = f", {ignored:,} left out" if ignored else ""
    found = f"{failed:,} failed" if failed else f"ended with status {status}" if status else "nothing"
    return f"{passed:,} tests passed{left_out}", found


def main() -> int:
    part, *command = sys.argv[1:]
    began, output = time.monotonic(), ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        for line in child.stdout or ():
            output += line
            print(line, end="", flush=True)
    record(part, time.monotonic() - began, *said(output, child.returncode))
    return int(child.returncode)


if __name__ == "__main__":
    sys.exit(main())

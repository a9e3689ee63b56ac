"""``python -m tests.aarch64``: the core's tests on 64-bit ARM, in machines with small and with larger pages."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.aarch64 import programs, python
from tests.aarch64.machines import MACHINES, QEMU, SUITE, Machine
from tests.aarch64.outcome import outcomes
from tests.guests import kernel
from tests.guests.packages import Packages, Unavailable, foreign

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path("target/aarch64").resolve()
ROOT = FOLDER / "root"


def booted(machine: Machine, image: Path, archive: Path, expected: int) -> bool:
    """Whether every program passed in one machine."""
    began = time.monotonic()
    printed = machine.boot(image, archive)
    found = outcomes(printed)
    pages = re.findall(r"^pages of .*", printed, re.MULTILINE)
    print(f"-- {', '.join(pages) or 'it did not start'} ({time.monotonic() - began:.0f} s)")
    for outcome in found:
        print(f"   {'ok    ' if outcome.fine else 'FAILED'} {outcome.name}: {outcome.words}")
        if not outcome.fine:
            print(outcome.printed[-4000:])
    passed = sum(outcome.fine for outcome in found)
    if len(found) < expected:
        print(f"the machine did not come to its end: {printed[-2000:]}")
    log = machine.log(archive).relative_to(Path.cwd())
    print(f"aarch64, {machine.pages} KiB: {passed} of {expected} programs passed ({log})", flush=True)
    return passed == expected


def prepared(names: list[str]) -> tuple[int, Path]:
    """Build what all guests start with: all programs, or those that are named; how many there are."""
    every = programs.build() if set(names) != {"python"} else {}
    for name in names:
        if name not in (*every, "python"):
            raise SystemExit(f"unknown program {name!r}: there are {', '.join(sorted(every))}, python")
    built = {name: path for name, path in every.items() if not names or name in names}
    _unpacked(programs.PACKAGES)
    archive = FOLDER / "tests.cpio"
    return programs.pack(archive, built, ROOT, _site() if not names or "python" in names else None), archive


def _site() -> Path | None:
    """Where Python's packages for the guests are; None, after saying why, if they cannot be had."""
    try:
        python.wheel()
        _unpacked(python.PACKAGES)
        python.site(FOLDER / "site")
    except Unavailable as why:
        print(f"test-aarch64: Python's part is skipped, as {why}")
        return None
    return FOLDER / "site"


def _unpacked(names: Iterable[str]) -> None:
    """Unpack packages that have not been."""
    for name in names:
        if not (ROOT / "usr/share/doc" / name).exists():
            _packages().unpack(name, ROOT)


def main() -> int:
    """Run the programs; 0 where all passed or nothing could be booted."""
    parser = argparse.ArgumentParser(prog="python -m tests.aarch64", description=__doc__)
    parser.add_argument("--pages", type=int, choices=[machine.pages for machine in MACHINES], help="KiB (default: all)")
    parser.add_argument("programs", nargs="*", help="test programs, like `fork` or `python` (default: all)")
    given = parser.parse_args()
    chosen = [machine for machine in MACHINES if given.pages in (None, machine.pages)]
    try:
        if shutil.which(QEMU) is None:
            raise Unavailable(f"there is no {QEMU} (Debian: apt-get install qemu-system-arm)")
        images = [kernel.find(FOLDER / machine.package, machine.package, _packages) for machine in chosen]
        expected, archive = prepared(given.programs)
    except Unavailable as why:
        print(f"test-aarch64: skipped, as {why}")
        return 0
    passed = [booted(machine, image, archive, expected) for machine, image in zip(chosen, images, strict=True)]
    return 0 if all(passed) else 1


def _packages() -> Packages:
    return foreign(FOLDER / "apt", "arm64", SUITE)


if __name__ == "__main__":
    sys.exit(main())

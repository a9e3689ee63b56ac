"""`python -m wheels`: build everything that this machine can, audit it, and try it.

What cannot be had here is named and left out: a free-threaded Python, the standard library of a Rust target, a compiler
for 64-bit ARM.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from wheels import audit, build, fresh
from wheels.steps import FailedError, say


def main() -> int:
    """Run the steps that were asked for; all by default."""
    parser = argparse.ArgumentParser(prog="python -m wheels", description=__doc__)
    parser.add_argument("--only", choices=("build", "audit", "try"), help="a single step, on what dist holds")
    parser.add_argument("--dist", type=Path, default=Path("dist"), help="folder of the results (default: dist)")
    known = ("sdist", *build.KINDS)
    parser.add_argument("--kinds", default=",".join(known), help="what to build (default: %(default)s)")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    for kind in kinds:
        if kind not in known:
            parser.error(f"unknown kind {kind!r}: there are {', '.join(known)}")
    try:
        if given.only in (None, "build"):
            for old in given.dist.glob("firsttouch-*"):  # and nothing else: the folder may be anybody's
                old.unlink()
            build.build(given.dist.absolute(), kinds)
        found = sorted(given.dist.absolute().glob("firsttouch-*"))
        if not found:
            raise FailedError(f"{given.dist} holds neither wheels nor an sdist: `make wheels` builds them")
        if given.only in (None, "audit"):
            audit.audit(found)
        if given.only in (None, "try"):
            fresh.try_each(found)
    except FailedError as error:
        print(f"\n*** {error}", file=sys.stderr)
        return 1
    for path in found:
        say(f"{path.name}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


sys.exit(main())

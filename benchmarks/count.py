"""Count lines and files by room at a commit and now, beside the targets: `python benchmarks/count.py [COMMIT]`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: The last commit of the second house.
BEFORE = "e3ba2c1b"
CODE = re.compile(r"\.(rs|py|pyi|jl|c|cc|h|hpp|f90|sh)$")
TEST = re.compile(r"^tests/|^fuzz/|/(tests?|benches)/|tests\.rs$")
EXAMPLE = re.compile(r"/examples/")
DOCUMENT = re.compile(r"\.(md|rst)$")
GENERATED = re.compile(r"^docs/.*\.(svg|png|json|csv)$")
LARGE = ("ARCHITECTURE.md", "BENCHMARKS.md", "CONTRIBUTING.md", "Makefile")

#: Lines, files, bytes: at most so many.
TARGETS = {
    "production": (34_000, 220, None),
    "  the core": (14_000, None, None),
    "tests": (26_000, None, None),
    "written by programs": (None, None, 200_000),
    "ARCHITECTURE.md": (None, None, 16_000),
    "BENCHMARKS.md": (None, None, 12_000),
    "CONTRIBUTING.md": (None, None, 6_000),
    "Makefile": (None, None, 6_000),
}


class Total(NamedTuple):
    """What the files of a room amount to."""

    lines: int = 0
    files: int = 0
    size: int = 0

    def plus(self, text: bytes) -> Total:
        """Return the total with one more file."""
        return Total(self.lines + text.count(b"\n"), self.files + 1, self.size + len(text))


def rooms(name: str, text: bytes) -> Iterator[str]:
    """Return the rows in which a file counts."""
    if CODE.search(name) and not EXAMPLE.search(name):
        if TEST.search(name):
            yield "tests"
        elif name.startswith(("crates/", "python/", "julia/")):
            yield "production"
            if name.startswith("crates/firsttouch/"):
                yield "  the core"
            elif name.startswith("crates/"):
                yield f"  {name.split('/')[1]}"
            else:
                yield f"  {name.split('/')[0]}"
        elif name.startswith("benchmarks/"):
            yield "benchmarks"
    if DOCUMENT.search(name) and name.startswith("docs/"):
        yield "docs"
    if GENERATED.search(name) or (DOCUMENT.search(name) and b"Written by `" in text[:200]):
        yield "written by programs"
    if name in LARGE:
        yield name


def counted(files: Iterator[tuple[str, bytes]]) -> dict[str, Total]:
    """Return the totals of all rooms."""
    found: dict[str, Total] = {}
    for name, text in files:
        for room in rooms(name, text):
            found[room] = found.get(room, Total()).plus(text)
    return found


def git(*words: str, given: bytes = b"") -> bytes:
    """Return what git prints."""
    return subprocess.run(["git", *words], cwd=ROOT, input=given, stdout=subprocess.PIPE, check=True).stdout


def of_commit(commit: str) -> Iterator[tuple[str, bytes]]:
    """Return the files of a commit."""
    names = [line.split("\t") for line in git("ls-tree", "-r", commit).decode().splitlines()]
    out = git("cat-file", "--batch", given="".join(f"{about.split()[2]}\n" for about, _ in names).encode())
    at = 0
    for _, name in names:
        head, end = out[at : out.index(b"\n", at)], out.index(b"\n", at) + 1
        size = int(head.split()[2])
        yield name, out[end : end + size]
        at = end + size + 1


def of_checkout() -> Iterator[tuple[str, bytes]]:
    """Return the files of this checkout: those that git knows, and new ones that it does not ignore."""
    for name in git("ls-files", "--cached", "--others", "--exclude-standard", "-z").decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            yield name, path.read_bytes()


def main(commit: str) -> int:
    """Print both counts side by side."""
    before, now = counted(of_commit(commit)), counted(of_checkout())
    print(f"{'':<22}{commit + ':':>10}{'':>17}{'now:':>8}{'':>19}at most:")
    print(f"{'':<22}{'lines':>8}{'files':>7}{'kB':>8}  {'lines':>8}{'files':>7}{'kB':>8}")
    for room in sorted({*before, *now}, key=_order):
        cells = [
            f"{each.lines:>8,}{each.files:>7,}{each.size / 1000:>8,.0f}  "
            for each in (_of(before, room), _of(now, room))
        ]
        print(f"{room:<22}{''.join(cells)}  {_target(room, _of(now, room))}")
    return 0


def _of(totals: dict[str, Total], room: str) -> Total:
    return totals.get(room, Total())


def _order(room: str) -> tuple[int, str]:
    first = ("production", "  ", "tests", "benchmarks", "docs", "written by programs")
    return next((at for at, start in enumerate(first) if room.startswith(start)), len(first)), room


def _target(room: str, now: Total) -> str:
    said = []
    for limit, value, unit in zip(TARGETS.get(room, (None,) * 3), now, ("lines", "files", "bytes"), strict=True):
        if limit is not None:
            said.append(f"{limit:,} {unit}{'' if value <= limit else ' (missed)'}")
    return ", ".join(said)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or [BEFORE]))

"""Count lines and files by room at a commit and now, beside the targets: `python benchmarks/count.py [COMMIT]`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: The last commit of the second house.
BEFORE = "e3ba2c1b"
CODE = re.compile(r"\.(rs|py|pyi|jl|c|cc|h|hpp|f90|sh)$")
TEST = re.compile(r"^tests/|^fuzz/|/(tests?|benches)/|tests\.rs$")
EXAMPLE = re.compile(r"/examples/")
DOCUMENT = re.compile(r"\.(md|rst)$")
GENERATED = re.compile(r"^docs/.*\.(svg|png|json|csv)$")
#: Unit tests inside a file of `src`, which are no production.
INSIDE = re.compile(rb"^#\[cfg\(test\)\]\n(?:#.*\n)*mod \w+ \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
LARGE = ("ARCHITECTURE.md", "BENCHMARKS.md", "CONTRIBUTING.md", "Makefile")

CRATES = ("firsttouch-c", "firsttouch-preload", "firsttouch-python", "firsttouch-report", "firsttouch-trace")
PARTS = ("the core", *CRATES, "julia", "python")
ROOMS = ("production", *(f"  {part}" for part in PARTS), "tests", "benchmarks", "docs", "written by programs", *LARGE)
#: Lines, files, bytes: at most so many.
TARGETS: dict[str, tuple[int | None, ...]] = {
    "production": (34_000, 220, None),
    "  the core": (14_000, None, None),
    "tests": (26_000, None, None),
    "written by programs": (None, None, 200_000),
    "ARCHITECTURE.md": (None, None, 16_000),
    "BENCHMARKS.md": (None, None, 12_000),
    "CONTRIBUTING.md": (None, None, 6_000),
    "Makefile": (None, None, 6_000),
}


#: Lines, files, bytes.
Total = tuple[int, int, int]


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

    def add(room: str, text: bytes, count: int) -> None:
        lines, number, size = found.get(room, (0, 0, 0))
        found[room] = lines + text.count(b"\n"), number + count, size + len(text)

    for name, text in files:
        for room in rooms(name, text):
            add(room, INSIDE.sub(b"", text), 1)
        add("tests", b"".join(INSIDE.findall(text)), 0)
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
    for room in ROOMS:
        totals = [found.get(room, (0, 0, 0)) for found in (before, now)]
        cells = [f"{lines:>8,}{files:>7,}{size / 1000:>8,.0f}" for lines, files, size in totals]
        limits = zip(TARGETS.get(room, ()), totals[1], ("lines", "files", "bytes"), strict=False)
        said = [f"{most:,} {unit}{' (missed)' * (is_ > most)}" for most, is_, unit in limits if most is not None]
        print(f"{room:<22}{'  '.join(cells)}    {', '.join(said)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or [BEFORE]))

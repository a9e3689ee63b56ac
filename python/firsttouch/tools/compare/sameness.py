"""Whether two runs wrote the same."""

from __future__ import annotations

import filecmp
from dataclasses import dataclass
from itertools import count
from pathlib import Path

_SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """The first line that differs, counted from 1; `None` where one of the two had ended."""

    line: int
    reference: bytes | None
    other: bytes | None

    def words(self, in_reference: str, in_other: str) -> str:
        """Both lines, with where they stand, from shortly before the place where they part."""
        first, second = _shown(self.reference, self.other)
        return f"line {self.line} is {first} {in_reference} and {second} {in_other}"


def difference(reference: Path, other: Path) -> Difference | None:
    """The first difference between two files, or `None`."""
    if filecmp.cmp(reference, other, shallow=False):
        return None
    with reference.open("rb") as first, other.open("rb") as second:
        for line in count(1):
            ours, theirs = first.readline(), second.readline()
            if ours != theirs:
                return Difference(line, ours or None, theirs or None)
            if not ours:
                return None  # the file changed between the two looks
    return None


def _shown(first: bytes | None, second: bytes | None) -> tuple[str, str]:
    if first is None or second is None:
        return _cut(first, 0), _cut(second, 0)
    apart = next((at for at, (one, two) in enumerate(zip(first, second, strict=False)) if one != two), None)
    if apart is None and first.strip(b"\n") == second.strip(b"\n"):
        ends = [" with a line's end" if line.endswith(b"\n") else " without one" for line in (first, second)]
        return _cut(first, 0) + ends[0], _cut(second, 0) + ends[1]
    begin = max(0, (min(len(first), len(second)) if apart is None else apart) - _SHOWN // 2)
    return _cut(first, begin), _cut(second, begin)


def _cut(line: bytes | None, begin: int) -> str:
    if line is None:
        return "missing"
    text = line.removesuffix(b"\n")
    shown = text[begin : begin + _SHOWN].decode("utf-8", "backslashreplace")
    return repr(f"{'...' if begin else ''}{shown}{'...' if len(text) > begin + _SHOWN else ''}")

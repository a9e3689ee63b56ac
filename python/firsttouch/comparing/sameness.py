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

    def words(self, of_reference: str, of_other: str) -> str:
        """Both lines, named after who wrote them, from shortly before the place where they part."""
        first, second = _shown(self.reference, self.other)
        return f"line {self.line} is {first} under {of_reference} and {second} under {of_other}"


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


def _shown(*lines: bytes | None) -> list[str]:
    if None in lines:
        apart = 0
    else:
        pairs = zip(*(line or b"" for line in lines), strict=False)
        apart = next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(line or b"") for line in lines))
    begin = max(0, apart - _SHOWN // 2)
    return [_cut(line, begin) for line in lines]


def _cut(line: bytes | None, begin: int) -> str:
    if line is None:
        return "not there"
    text = line.removesuffix(b"\n")[begin : begin + _SHOWN].decode("utf-8", "backslashreplace")
    more = "..." if len(line.removesuffix(b"\n")) > begin + _SHOWN else ""
    return repr(f"{'...' if begin else ''}{text}{more}")

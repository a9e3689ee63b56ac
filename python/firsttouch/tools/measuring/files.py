"""Small files of the kernel's."""

from __future__ import annotations

from pathlib import Path

MISSING = "not readable"


def read(path: str | Path | None, missing: str = MISSING) -> str:
    """What stands in the file, without the white space around it."""
    try:
        return missing if path is None else Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return missing


def fields(path: str | Path, separator: str | None = None) -> dict[str, int]:
    """Lines of a name and a number; other lines, and a file that can't be read, give nothing."""
    found: dict[str, int] = {}
    for line in read(path, "").splitlines():
        words = line.replace(":", " ").split(separator)
        if len(words) >= 2 and words[1].isdecimal():
            found[words[0]] = int(words[1])
    return found


def chosen(text: str) -> str:
    """The word in brackets among the kernel's alternatives, as in `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0] or text

"""Reads the kernel's small files, any of which may be missing or unreadable."""

from pathlib import Path


def read(path: Path) -> str | None:
    """Return the text of a file without surrounding white space; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(path: Path) -> int | None:
    """Return the number in a file; None if the file is missing or contains something else."""
    text = read(path)
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def chosen(path: Path) -> str | None:
    """Return the word in brackets, as in "always [madvise] never", or the only word."""
    text = read(path)
    if text is None:
        return None
    for word in text.split():
        if word.startswith("["):
            return word.strip("[]")
    return text or None


def fields(path: Path, separator: str = ":") -> dict[str, str]:
    """Return the "name: value" lines of a file; empty if it cannot be read."""
    pairs = (line.partition(separator) for line in (read(path) or "").splitlines())
    return {name.strip(): value.strip() for name, found, value in pairs if found}


def known(value: object) -> str:
    """Format a value; None is "unknown"."""
    return "unknown" if value is None else str(value)

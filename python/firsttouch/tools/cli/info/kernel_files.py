"""Reading the kernel's small files, any of which may be missing or closed to us."""

from pathlib import Path


def read(path: Path) -> str | None:
    """The text of a file without the white space around it; None where there is none to be had."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(path: Path) -> int | None:
    """The number in a file; None for a missing file or another content."""
    text = read(path)
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def chosen(path: Path) -> str | None:
    """The word in brackets, as in "always [madvise] never"; a single word stands for itself."""
    text = read(path)
    if text is None:
        return None
    for word in text.split():
        if word.startswith("["):
            return word.strip("[]")
    return text or None


def fields(path: Path, separator: str = ":") -> dict[str, str]:
    """The lines of a file that read "name: value"; empty where there is no file."""
    pairs = (line.partition(separator) for line in (read(path) or "").splitlines())
    return {name.strip(): value.strip() for name, found, value in pairs if found}


def known(value: object) -> str:
    """A value in words, "unknown" for None."""
    return "unknown" if value is None else str(value)

"""The programs of the gallery, and the words written about them: docs/gallery/programs.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "gallery"


@dataclass(frozen=True)
class Program:
    """A program, and what its page says besides the figures."""

    name: str
    title: str
    file: str
    """Relative to docs/gallery."""
    small: str
    """The argument with which it ends within seconds, for tests."""
    turns: int
    """How often its main loop is repeated; what `turn` calls one of them."""
    turn: str
    packages: list[str]
    about: str
    why: str
    """May contain names of :func:`benchmarks.gallery.facts.facts` in braces: no measured number is typed in by hand."""

    @property
    def path(self) -> Path:
        """The program's file."""
        return (FOLDER / self.file).resolve()


def catalogue(file: Path = FOLDER / "programs.toml") -> list[Program]:
    """Return all programs, in the order of the file."""
    return [Program(name, **entry) for name, entry in tomllib.loads(file.read_text("utf-8")).items()]

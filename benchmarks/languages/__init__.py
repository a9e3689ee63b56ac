"""Programs in seven languages, and how each is made into a command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
#: What turns a source into an executable, by the source's suffix.
_COMPILERS = {
    ".c": ("cc", "-O2"),
    ".cc": ("c++", "-O2", "-std=c++17", "-pthread"),
    ".f90": ("gfortran", "-O2"),
}
#: What runs a source, by its suffix. sqlite3 reads its standard input.
_INTERPRETERS = {
    ".R": ("Rscript", "--vanilla"),
    ".m": ("octave-cli", "--norc", "--no-window-system", "--quiet", "--path", str(FOLDER)),
    ".py": (sys.executable,),
    ".sql": ("sqlite3", ":memory:"),
}
LANGUAGES = {
    ".c": "C",
    ".cc": "C++",
    ".f90": "Fortran",
    ".R": "R",
    ".m": "Octave",
    ".py": "Python",
    ".sql": "SQL",
}
#: What they share.
_OTHERS = ("__init__", "rest")
NAMES = tuple(sorted(path.name for path in FOLDER.iterdir() if path.suffix in LANGUAGES and path.stem not in _OTHERS))


@dataclass(frozen=True)
class Program:
    """A command, and the file that it reads as its standard input."""

    command: tuple[str, ...]
    stdin: str = "/dev/null"


def program(name: str, folder: Path) -> Program | None:
    """Return a program that can be started, compiled into `folder`; None if its language is not installed."""
    source = FOLDER / name
    words = _COMPILERS.get(source.suffix, _INTERPRETERS.get(source.suffix, ()))
    found = shutil.which(words[0])
    if found is None:
        return None
    if source.suffix in _COMPILERS:
        made = folder / source.stem
        subprocess.run([found, *words[1:], str(source), "-o", str(made), "-lm"], cwd=folder, check=True)
        return Program((str(made),))
    if source.suffix == ".sql":
        return Program((found, *words[1:]), str(source))
    return Program((found, *words[1:], str(source)))

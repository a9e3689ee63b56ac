"""Commands that say what they are for, and Pythons to run them with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
#: Everything that is made on the way: the unpacked sdist, environments, roots.
WORK = ROOT / "target" / "publish"


class FailedError(Exception):
    """A step failed; the message says which and what it printed."""


def say(text: str) -> None:
    """Print one line at once."""
    print(text, flush=True)


def run(command: Sequence[object], why: str, *, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it printed, which is shown only if it fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise FailedError(f"{why}: {' '.join(map(str, command))} exited with {done.returncode}\n{done.stdout}")
    return done.stdout


def tool(name: str) -> Path:
    """Return a program of the environment that this module runs in."""
    return Path(sys.executable).parent / name


def find_python(*options: str) -> Path | None:
    """Return the Python that the whole project is built with; None, with its message, if there is none of that kind.

    $PYTHON, if it is set, is one with the GIL, so it does not decide about the others.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHON" or "--free-threaded" not in options}
    done = subprocess.run(
        [ROOT / ".ci" / "find-python", *options], env=kept, stdout=subprocess.PIPE, text=True, check=False
    )
    return Path(done.stdout.splitlines()[0]) if done.returncode == 0 and done.stdout else None


def fresh_environment(name: str, python: Path, *locks: str) -> Path:
    """Make an environment with what the locks name, and nothing else; return its Python."""
    folder = WORK / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    run([python, "-m", "venv", folder], f"make the environment {name}")
    inside = folder / "bin" / "python"
    for lock in locks:
        pip_install(inside, "--require-hashes", "-r", ROOT / "requirements" / f"{lock}.txt")
    return inside


def pip_install(python: Path, *what: str | Path) -> None:
    """Install into an environment."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *what]
    run(command, f"install {what[-1]}", cwd=WORK)

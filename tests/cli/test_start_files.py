"""The files that start firsttouch: a .pth line up to Python 3.14, a .start file from 3.15 on (PEP 829)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.tools.cli import program
from firsttouch.tools.cli.parser import BadUsageError

from .conftest import clean_environment

START = Path(__file__).parents[2] / "wheel-data" / "purelib" / "firsttouch_start.start"

#: site of Python 3.15 resolves each line as pkgutil.resolve_name does, and calls what it finds without arguments.
CALL = f"""
import json, sys
sys.path.append(sys.argv[1])
import pkgutil
before = set(sys.modules)
for line in open({str(START)!r}, encoding="utf-8"):
    pkgutil.resolve_name(line.strip())()
print(json.dumps(sorted(set(sys.modules) - before)))
"""

#: `firsttouch run` in a Python that calls itself another version.
RUN_AS = """
import sys
from firsttouch.tools.cli import program
sys.version_info = (3, {minor}, 0)
program._site_folders = lambda: [{folder!r}]
program.check([sys.executable, {option!r}])
print("it would run")
"""


def called(**environment: str) -> list[str]:
    import _firsttouch_start

    done = subprocess.run(
        [sys.executable, "-S", "-c", CALL, str(Path(_firsttouch_start.__file__).parents[1])],
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


def test_entry_point_without_the_variable_loads_one_module() -> None:
    assert called() == ["_firsttouch_start"]


def test_entry_point_with_the_variable_begins() -> None:
    assert "_firsttouch_start.hook" in called(FIRSTTOUCH_RUN="{}")


def checked(folder: Path, minor: int, option: str) -> str:
    code = RUN_AS.format(minor=minor, folder=str(folder), option=option)
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("minor", "ending", "runs"),
    [(14, "pth", True), (14, "start", False), (15, "start", True), (15, "pth", False), (18, "pth", False)],
)
def test_only_the_file_that_this_python_obeys_counts(tmp_path: Path, minor: int, ending: str, runs: bool) -> None:
    """-S stands for a Python that ignores the file, so that only the file in the folder can convince."""
    (tmp_path / f"firsttouch_start.{ending}").write_text("import _firsttouch_start\n")
    said = checked(tmp_path, minor, "-S")
    assert ("it would run" in said) == runs, said
    if not runs:
        assert f"no firsttouch_start.{'start' if minor >= 15 else 'pth'} in this Python's site-packages" in said
        assert "install firsttouch there, with" in said


def test_the_error_is_one_of_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_site_folders", lambda: [str(tmp_path)])
    with pytest.raises(BadUsageError, match="programs would start without firsttouch"):
        program.check([sys.executable, "-S"])

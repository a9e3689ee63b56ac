"""The files that start firsttouch: a .pth line up to Python 3.14, a .start file from 3.15 on (PEP 829)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import _firsttouch_start
from firsttouch.tools.cli import BadUsageError, program
from tests.programs import execute

from .conftest import Start, Write

FOLDER = Path(__file__).parents[2] / "wheel-data" / "purelib"

#: site runs each line of a .pth file so; of a .start file, from Python 3.15 on, it calls what each line names.
LOADED = f"""
import json, os, pkgutil, sys
sys.path.append(sys.argv[1])
before = set(sys.modules)
if sys.argv[2] == "pth":
    exec(open("{FOLDER}/firsttouch_start.pth").read())
else:
    for line in open("{FOLDER}/firsttouch_start.start"):
        pkgutil.resolve_name(line.strip())()
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize("file", ["pth", "start"])
def test_what_they_load(file: str) -> None:
    def loaded(**environment: str) -> set[str]:
        folder = Path(_firsttouch_start.__file__).parents[1]
        done = execute(sys.executable, "-S", "-c", LOADED, folder, file, env=environment, check=True)
        return set(json.loads(done.stdout))

    assert loaded() == (set() if file == "pth" else {"_firsttouch_start"})
    new = loaded(FIRSTTOUCH_RUN="{}")
    ours = {name for name in new if name.startswith("_firsttouch_start")}
    assert "_firsttouch_start.ending" in ours
    assert new - ours <= {"atexit", "_interpreters", "_xxsubinterpreters"}


def test_program_without_numpy_never_imports_it(firsttouch: Start, write: Write) -> None:
    """Not even for the report, which comes after this."""
    early = write("early/sitecustomize.py", "import atexit, sys\n").parent
    code = (
        "import sys, _firsttouch_start as native\n"
        "load = native.load\n"
        "def loaded():\n"
        "    print([name for name in ('numpy', 'firsttouch', 'argparse') if name in sys.modules])\n"
        "    return load()\n"
        "native.load = loaded"
    )
    done = firsttouch("run", "-c", code, env={"PYTHONPATH": str(early)})
    assert done.stdout == "[]\n"
    assert "NumPy was never imported" in done.stderr


@pytest.mark.parametrize(
    ("minor", "ending", "runs"),
    [(14, "pth", True), (14, "start", False), (15, "start", True), (15, "pth", False), (18, "pth", False)],
)
def test_only_the_file_that_this_python_obeys_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minor: int, ending: str, runs: bool
) -> None:
    (tmp_path / f"firsttouch_start.{ending}").write_text("import _firsttouch_start\n")
    monkeypatch.setattr(program, "_site_folders", lambda: {str(tmp_path)})
    monkeypatch.setattr(sys, "version_info", (3, minor, 0))
    if runs:
        program.python(program.Program(("-c",)))
        return
    file = f"no firsttouch_start.{'start' if minor >= 15 else 'pth'} in this Python's site-packages"
    with pytest.raises(BadUsageError, match=rf"{file}.*programs would start without.*install firsttouch there, with"):
        program.python(program.Program(("-c",)))

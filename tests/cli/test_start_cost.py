"""The cost of the .pth file, counted in imported modules, which does not depend on the machine's load."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .conftest import Start, clean_environment

Write = Callable[[str, str], Path]

(PTH,) = (Path(__file__).parents[2] / "wheel-data" / "purelib").glob("*.pth")

#: site runs each line of a .pth file just so.
RUN_LINE = f"""
import json, os, sys
sys.path.append(sys.argv[1])
line = open({str(PTH)!r}).read()
before = set(sys.modules)
exec(line)
new = set(sys.modules) - before
print(json.dumps(sorted(new)))
"""


def new_modules(**environment: str) -> list[str]:
    import _firsttouch_start

    site = str(Path(_firsttouch_start.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-S", "-c", RUN_LINE, site],
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout.splitlines()[0])
    return found


def test_one_line_that_site_will_run() -> None:
    lines = PTH.read_text("utf-8").splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("import ")


def test_without_the_variable_nothing_is_imported() -> None:
    assert new_modules() == []


def test_with_the_variable_only_small_modules_are() -> None:
    new = new_modules(FIRSTTOUCH_RUN="{}")
    ours = [name for name in new if name.startswith("_firsttouch_start")]
    others = set(new) - set(ours)
    assert ours
    assert others <= {"atexit", "_interpreters", "_xxsubinterpreters"}


def test_plain_interpreter_does_not_know_us(python: Start) -> None:
    done = python("-c", "import sys; print([name for name in sys.modules if 'firsttouch' in name])")
    entered = ["_firsttouch_start"] if sys.version_info >= (3, 15) else []  # a .start file is always called
    assert (done.stdout, done.stderr) == (f"{entered}\n", "")


def test_program_without_numpy_never_imports_it(firsttouch: Start, write: Write) -> None:
    """Not even for the report, which comes after this."""
    early = write("early/sitecustomize.py", "import atexit, sys\n").parent
    code = (
        "import sys, _firsttouch_start.hook as native\n"
        "load = native.load\n"
        "def loaded():\n"
        "    print([name for name in ('numpy', 'firsttouch', 'argparse') if name in sys.modules])\n"
        "    return load()\n"
        "native.load = loaded"
    )
    done = firsttouch("run", "-c", code, environment={"PYTHONPATH": str(early)})
    assert done.stdout == "[]\n"
    assert "NumPy was never imported" in done.stderr

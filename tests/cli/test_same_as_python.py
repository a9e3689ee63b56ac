"""Whatever a program can observe or print is as under python."""

import signal
import sys
import zipfile
from pathlib import Path

import pytest

from tests.programs import execute, running

from .conftest import FIRSTTOUCH, Start, Write

LOOK = """
import os, sys
import numpy
main = sys.modules["__main__"]
print(sys.argv, sys.path, __name__, globals().get("__file__"), main.__dict__ is globals())
print(__package__, getattr(__spec__, "origin", None), type(__loader__).__name__)
print(sys.flags, sys.warnoptions, sys._xoptions, sys.executable)
print([type(finder).__name__ for finder in sys.meta_path], len(sys.path_hooks))
spec, loader = numpy.__spec__, numpy.__loader__
print(type(spec), type(loader), vars(loader), spec.loader is loader, spec.origin, spec.cached, sorted(vars(spec)))
print({name: value for name, value in os.environ.items() if name != "FIRSTTOUCH_RUN"})
"""


def same(python: Start, firsttouch: Start, *words: object, before: tuple[str, ...] = (), **options: object) -> None:
    plain = python(*before, *words, **options)
    ours = firsttouch("run", "-q", *words, before=before, **options)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.mark.parametrize(
    "words",
    [
        ["look.py"],
        ["look.py", "one", "-q", "--json", "--", "-m"],
        ["-m", "package", "x"],
        ["-m", "package.inner.look", "-c", "x"],
        ["-c", LOOK, "a", "-b"],
        ["package"],
        ["archive.zip", "x"],
        # What cannot start.
        *(["folder"], ["syntax.py"], ["-c", "1 +"], ["-m", "missing"], ["empty.zip"], ["-m"]),
    ],
    ids=lambda words: " ".join(words)[:24],
)
def test_program_sees_what_python_shows(python: Start, firsttouch: Start, write: Write, words: list[str]) -> None:
    write("look.py", LOOK)
    write("folder/other.py", "")
    write("syntax.py", "def f(:\n")
    write("package/__init__.py", "")
    write("package/__main__.py", LOOK)
    write("package/inner/__init__.py", "import numpy")
    folder = write("package/inner/look.py", LOOK).parents[2]
    for name, file in (("archive", "__main__.py"), ("empty", "other.py")):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr(file, LOOK)
    same(python, firsttouch, *words)


@pytest.mark.parametrize(
    "before",
    [
        ("-O", "-X", "dev"),
        ("-Werror", "-u", "-Xwarn_default_encoding"),
        ("-W", "ignore", "-bb", "-s", "-P", "-Xutf8=1"),
    ],
    ids=" ".join,
)
def test_python_s_own_options_are_kept(python: Start, firsttouch: Start, write: Write, before: tuple[str, ...]) -> None:
    script = write("look.py", LOOK)
    same(python, firsttouch, script, before=before, env={"PYTHONDONTWRITEBYTECODE": ""})


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit('told you')", 1),
        ("import numpy\ndef f(): numpy.ones((2,3)) @ numpy.ones((2,3))\nf()", 1),
        ("import os; os._exit(3)", 3),
        pytest.param(
            "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
            -signal.SIGTERM,
            marks=pytest.mark.linux("signals"),
        ),
        ("import threading; threading.Thread(target=lambda: 1/0).start()", 0),
        ("import atexit; atexit.register(lambda: 1/0)", 0),
    ],
)
def test_ends_as_python_ends(python: Start, firsttouch: Start, write: Write, code: str, status: int) -> None:
    script = write("ends.py", code)
    plain, ours = python(script), firsttouch("run", "-q", script)
    assert plain.returncode == status
    assert _without_addresses(ours.stderr) == _without_addresses(plain.stderr)
    assert (ours.stdout, ours.returncode) == (plain.stdout, plain.returncode)


def _without_addresses(text: str) -> str:
    lines = [line for line in text.splitlines() if "0x" not in line]
    return "\n".join(lines)


def test_standard_input_is_the_program_s_or_the_program(python: Start, firsttouch: Start, write: Write) -> None:
    script = write("read.py", "import sys, numpy; print(sys.stdin.read().upper(), input)")
    same(python, firsttouch, script, input="some words\nof input")
    same(python, firsttouch, "-", "word", input="import sys; print(sys.argv, sys.path[0])")


@pytest.mark.linux("bash")
def test_program_from_a_pipe(tmp_path: Path) -> None:
    """The shell's <( ) is a file that can be read once only."""
    command = f"{sys.executable} -m firsttouch run -q <(echo 'print(1 + 1)')"
    done = execute("bash", "-c", command, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


@pytest.mark.linux("the command becomes the program")
def test_process_is_the_one_that_was_started(write: Write) -> None:
    """Signals and waits meant for the program must reach it: there is no process between."""
    script = write("pid.py", "import os; print(os.getpid())")
    with running(*FIRSTTOUCH, "run", "-q", script) as process:
        out, _ = process.communicate(timeout=60)
    assert int(out) == process.pid

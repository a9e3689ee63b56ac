"""Modules in the current folder are not run by firsttouch, and isolated interpreters ignore FIRSTTOUCH_RUN."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.programs import execute

from .conftest import Start, Write

#: What our processes import; `-P` is what the `firsttouch` command itself is started with, in effect.
NAMES = ("json", "numpy", "resource", "rich", "subprocess", "tempfile", "traceback", "firsttouch")
PLANTED = """
import os
open(os.path.join(os.path.dirname(__file__), "ran"), "a").write(__name__)
raise SystemExit
"""


@pytest.mark.parametrize(
    "words",
    [
        ["advise", "one.ft"],
        ["--info", "-q"],
        ["compare", "--runs", "1", "--allocator", "mimalloc()", "-q", "--", "true"],
        ["run", "-q", "--allocator", "pool()", "-c", "pass"],
    ],
    ids=lambda words: words[0],
)
def test_modules_of_the_current_folder_are_not_run(
    firsttouch: Start, write: Write, tmp_path: Path, words: list[str]
) -> None:
    trace = firsttouch("trace", "-q", "-o", "one.ft", "-c", "import numpy as np; np.ones(30000)", before=("-P",))
    assert trace.returncode == 0, trace.stderr
    for name in NAMES:
        write(f"{name}.py", PLANTED)
    done = firsttouch(*words, before=("-P",))
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert done.returncode == 0, done.stderr


def test_nor_by_python_m_once_it_is_ours(firsttouch: Start, write: Write, tmp_path: Path) -> None:
    write("argparse.py", PLANTED)
    assert firsttouch("--info", "-q").returncode == 0
    assert not (tmp_path / "ran").exists()


def test_a_program_has_its_own_folder_as_ever(firsttouch: Start, write: Write) -> None:
    write("helper.py", "print('helped')")
    script = write("script.py", "import helper")
    for words in (["run", "-q", script], ["run", "-q", "-c", "import helper"], ["run", "-q", "-m", "script"]):
        assert firsttouch(*words).stdout == "helped\n"


@pytest.mark.parametrize("option", ["-I", "-E"])
def test_isolated_interpreters_ignore_the_variable(tmp_path: Path, option: str) -> None:
    environment = {"FIRSTTOUCH_RUN": json.dumps({"json": f"{tmp_path}/victim-%p"})}
    code = "import sys; print('_firsttouch_start.ending' in sys.modules)"
    done = execute(sys.executable, option, "-c", code, env=environment)
    assert (done.stdout, done.stderr) == ("False\n", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take on another user's rights")
def test_so_do_processes_with_more_rights_than_their_caller(tmp_path: Path) -> None:
    environment = {"FIRSTTOUCH_RUN": json.dumps({"json": f"{tmp_path}/victim-%p"})}
    code = f"import os; os.setresuid(65534, 0, 0); os.execv({sys.executable!r}, ['python', '-c', 'pass'])"
    execute(sys.executable, "-I", "-c", code, env=environment, check=True)
    assert not list(tmp_path.iterdir())

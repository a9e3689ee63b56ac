"""Errors print one line that names the cause, and exit with status 2 before any program has run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Start, start

PROGRAM = "import numpy as np; np.ones(9); open('ran', 'w')"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("traces")
    (tmp_path / "script.py").write_text(PROGRAM)
    (tmp_path / "wrapper").write_text("#!/bin/sh -e\npython script.py\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.ft").mkdir()
    assert start("-m", "firsttouch", "trace", "-q", "-o", "good.ft", "script.py", cwd=tmp_path).returncode == 0
    good = (tmp_path / "good.ft").read_bytes()
    (tmp_path / "empty.ft").write_bytes(b"")
    (tmp_path / "cut.ft").write_bytes(good[:-20])
    (tmp_path / "later.ft").write_bytes(good[:8] + b"\x07" + good[9:])
    (tmp_path / "ran").unlink()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trace"], "trace: missing program"),
        (["trace", "-o", "script.py", "-c", "1"], "-o takes a file to write"),
        (["trace", "-o", "no/such.ft", "script.py"], "no such directory"),
        (["trace", "-o", "folder", "script.py"], "it is a directory"),
        (["trace", "--json", "x.json", "script.py"], "--json, --html and --plot are for --summary"),
        (["trace", "--summary", "no.ft"], "no such file: no.ft"),
        (["trace", "--summary", "folder.ft"], "folder.ft is a directory"),
        (["trace", "--summary", "--json", "no/such.json", "good.ft"], "no such directory"),
        (["trace", "--sumary", "script.py"], "did you mean --summary?"),
        (["trace", "--summary", "missing.ft"], "no such file: missing.ft"),
        (["trace", "--summary", "empty.ft"], "empty.ft: the file is empty"),
        (["trace", "--summary", "later.ft"], "version 7"),
        (["trace", "--summary", "good.ft", "more"], "unexpected argument more"),
        (["trace", "--summary", "-o", "t-%p.ft", "script.py"], "omit %p"),
        (["trace", "-O", "script.py"], "python -O -m firsttouch trace"),
        (["trace", "--summary", "--lines", "0", "good.ft"], "--lines: takes a number of lines, 1 or more, not '0'"),
        (["trace", "-o", "", "script.py"], "trace: -o needs a file name"),
        (["trace", "good.ft"], "good.ft is a trace, not a program: firsttouch trace --summary good.ft summarizes it"),
        (["advise", "good.ft"], "advise: good.ft is a trace, not a program"),
        (["compare", "good.ft"], "compare: good.ft is a trace, not a program"),
        (["run", "good.ft"], "run: good.ft is a trace, not a program"),
        (["advise", "--json", "", "script.py"], "advise: --json needs a file name"),
        (["advise", "ls"], "is not a Python program"),
        (["compare", "ls"], "is not a Python program (firsttouch compare -- takes any command)"),
        (["advise", "/bin/sh"], "advise: /bin/sh is not a Python program (firsttouch compare -- /bin/sh measures it)"),
        (["trace", "/bin/sh"], "trace: /bin/sh is not a Python program"),
        (["run", sys.executable], f"run: for another Python, {sys.executable} -m firsttouch run script.py"),
        (["compare", "/bin/sh"], "compare: /bin/sh is not a Python program (firsttouch compare -- takes any command)"),
        (["advise", "wrapper"], "wrapper is a script for /bin/sh -e, not a Python program (firsttouch compare -- wrap"),
        (["run", "wrapper"], "run: wrapper is a script for /bin/sh -e and not executable: firsttouch run /bin/sh -e"),
        (["advise"], "advise: missing program"),
        (["advise", "--json", "no/such.json", "script.py"], "no such directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_one_line(files: Path, words: list[str], said: str) -> None:
    done = start("-m", "firsttouch", *words, cwd=files)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("firsttouch: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (files / "ran").exists()


def test_a_missing_script_is_pythons_to_tell(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("trace", "nowhere.py")
    assert done.returncode == 2
    assert "can't open file" in done.stderr
    assert not (tmp_path / "trace.ft").exists()


def test_an_older_trace_is_not_the_programs(tmp_path: Path) -> None:
    words = ("-m", "firsttouch", "trace", "--summary", "-o", "old.ft", "-c")
    assert " arrays, at most" in start(*words, "import numpy as np; np.ones(9)", cwd=tmp_path).stdout
    old = (tmp_path / "old.ft").read_bytes()
    done = start(*words, "print('hi')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert "no trace: NumPy was never imported" in done.stderr
    assert (tmp_path / "old.ft").read_bytes() == old


@pytest.mark.parametrize("name", ["a%rb", "50%pc", "20%% off", b"not-\xff-utf-8"])
@pytest.mark.parametrize("command", ["trace", "trace --summary", "advise", "run --json report.json"])
def test_what_folders_are_called_does_not_matter(tmp_path: Path, name: str | bytes, command: str) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    (folder / "script.py").write_text("import numpy as np\na = np.ones(10**6)\n")
    done = start("-m", "firsttouch", *command.split(), "script.py", cwd=folder, environment={"TMPDIR": str(folder)})
    assert done.returncode == 0, done.stderr
    assert "no trace" not in done.stderr
    assert "no advice" not in done.stderr
    assert {file.name for file in folder.iterdir()} - {"script.py"} == (
        {"trace.ft"} if command == "trace" else {"report.json"} if "json" in command else set()
    )
    if command == "trace --summary":
        assert "script.py:2" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("closed", ["", ">&-"])
def test_json_that_cannot_be_written_is_named(files: Path, closed: str) -> None:
    command = f"exec '{sys.executable}' -m firsttouch trace --summary --json /dev/full good.ft {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=files, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "firsttouch: trace: cannot write /dev/full: No space left on device\n"

"""Mistakes of every command: one line on standard error that names the cause, status 2, and nothing has run."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

from firsttouch.tools.cli.main import ABOUT, COMMANDS, main
from tests.programs import execute

from .conftest import FIRSTTOUCH, Start

pytest.importorskip("rich", reason="the commands that measure need rich")
pytest.importorskip("matplotlib", reason="pictures need matplotlib")

MISTAKES: list[tuple[list[str], str]] = [
    ([], "missing command"),
    (["rnu"], "did you mean run?"),
    (["script.py"], "firsttouch run script.py"),
    (["nonexist\udcff"], "unknown command"),
    # Where the program begins, and what it is.
    (["run"], "missing program"),
    (["run", "python3", "script.py"], "omit python3"),
    (["run", sys.executable], f"for another Python, {sys.executable} -m firsttouch run script.py"),
    (["trace"], "trace: missing program"),
    (["compare"], "missing program"),
    (["run", "nope.py"], "run: no program nope.py"),
    # Options of python, of another command, or misspelt.
    (["run", "--qiet", "script.py"], "did you mean --quiet?"),
    (["trace", "--xx\udcff", "script.py"], "trace: "),
    (["--info", "more"], "unexpected argument more"),
    (["bench", "zero"], "did you mean zeros?"),
    (["bench", "nothing"], "unknown experiment 'nothing'"),
    # Sizes, times and numbers.
    (["run", "--limit", "0", "script.py"], "run: --limit: 0 bytes would serve no array"),
    (["run", "--limit", "lots", "script.py"], 'run: --limit: "lots" is not a size: write a number of bytes'),
    (["run", "--limit", "1000", "script.py"], "1,000 bytes would serve no array, as those of 16 KiB and more are"),
    (["compare", "--runs", "0", "script.py"], "--runs: takes a number"),
    (["bench", "triad", "--sizes", "lots"], '"lots" is not a size'),
    # Allocators.
    (["run", "--allocator", "mimaloc", "script.py"], "no allocator 'mimaloc' (did you mean mimalloc?)"),
    (["run", "--allocator", "pages(huge=tph)", "script.py"], "(did you mean thp?)"),
    (["run", "--allocator", "", "script.py"], "the allocator expression is empty"),
    (["run", "--allocator", "numpy_default", "script.py"], "install() cannot take numpy_default()"),
    (["run", "--allocator", "__import__('os').abort()", "script.py"], "is not an allocator expression"),
    # Files to write and to read.
    (["run", "--json"], "--json: expected one argument"),
    (["run", "--json", "", "script.py"], "needs a file name"),
    (["run", "--json", "script.py", "other.py"], "--json takes a file to write"),
    (["run", "--json", "no/such/folder/report.json", "script.py"], "No such file or directory"),
    (["--info", "--json", "no/such/folder/x.json"], "cannot write no/such/folder/x.json: No such file or directory"),
    (["trace", "-o", "script.py", "-c", "1"], "-o takes a file to write"),
    (["trace", "-o", "no/such.ft", "script.py"], "No such file or directory"),
    (["trace", "-o", "-", "script.py"], "-o needs a file name, not '-'"),
    (["run", "--html", "-", "script.py"], "--html needs a file name, not '-'"),
    (["compare", "--plot", "no/such/x.png", "script.py"], "No such file or directory"),
    (["compare", "--plot", "x.xyz", "script.py"], "--plot draws .png, .svg or .pdf, not x.xyz"),
]
if sys.platform != "win32":  # which has other words and other files, and no advise
    MISTAKES += [
        (["advise", "good.ft", "more"], "unexpected argument more"),
        (["advise", "--json", "", "script.py"], "advise: --json needs a file name"),
        (["advise", "--json", "no/such.json", "script.py"], "No such file or directory"),
        (["advise", "no.ft"], "no.ft: No such file or directory"),
        (
            ["advise", "empty.ft"],
            "empty.ft: the program was killed, ended by os._exit or became another, before its trace was written",
        ),
        (["advise", "other.ft"], "other.ft: the file is not a firsttouch trace"),
        (["advise", "report.json"], "report.json: the file is not a firsttouch trace"),
        (["advise", "later.ft"], "version 7"),
        (["run", "--limit", "auto", "/bin/true"], "run: --limit is for Python programs, and /bin/true is not one"),
        (["advise", "/bin/true"], "advise: /bin/true is not a Python program; firsttouch compare measures programs of"),
        (["trace", "sh", "job.sh"], "trace: sh is not a Python program"),
        (["run", "--json", "folder", "script.py"], "Is a directory"),
        (["run", "--json", "/proc/report.json", "script.py"], "No such file or directory"),
        (["trace", "-o", "folder", "script.py"], "Is a directory"),
        (["advise", "folder.ft"], "folder.ft: Is a directory"),
        (["compare", "--json", "/proc/x.json", "script.py"], "cannot write /proc/x.json"),
        (["why"], "missing program"),
        (["why", "999999999"], "there is no process 999999999"),
        (["why", "nothing.py"], "nothing.py"),
        (["why", "--watch", "0", "1"], "takes seconds, more than 0"),
        (["why", "--watch", "2", "script.py"], "--watch and --lines are for a running process"),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that leaves a file, a folder, and traces: whole, empty, of a later version."""
    path = tmp_path_factory.mktemp("mistakes")
    (path / "script.py").write_text("import numpy as np; np.ones(9); open('ran', 'w')")
    (path / "folder").mkdir()
    (path / "folder.ft").mkdir()
    assert execute(*FIRSTTOUCH, "trace", "-q", "-o", "good.ft", "script.py", cwd=path).returncode == 0
    good = (path / "good.ft").read_text()
    (path / "empty.ft").write_bytes(b"")
    (path / "other.ft").write_bytes(b"[1]\xff")
    (path / "report.json").write_text('{"version": 1}')
    (path / "later.ft").write_text(good.replace("1", "7", 1))
    (path / "ran").unlink()
    return path


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_mistake_is_one_line_before_anything_runs(
    folder: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def execve(*given: object) -> None:
        raise AssertionError(f"it would have run {given[:2]}")

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
    monkeypatch.chdir(folder)
    assert main(words) == 2
    found = capfd.readouterr()
    assert found.out == ""
    assert found.err.startswith("firsttouch: ")
    assert found.err.count("\n") == 1
    assert said in found.err
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("option", "words"), [("-S", ["run"]), ("-I", ["run"]), ("-I", ["compare"]), ("-E", ["trace"])], ids=str
)
def test_options_of_python_with_which_nothing_would_start(firsttouch: Start, option: str, words: list[str]) -> None:
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} if option == "-S" else {}
    done = firsttouch(*words, "-c", "print('it ran')", before=(option,), env=path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"omit {option}" in done.stderr


#: The command line without a package.
WITHOUT = """
import sys
sys.modules[{package!r}] = None
from _firsttouch_start import main
raise SystemExit(main())
"""


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("numpy", "bench touch --quick"),
        *(("rich", command) for command in ("compare -c 1", "bench triad")),
        pytest.param("rich", "advise -c 1", marks=pytest.mark.linux("advise, which stands on glibc")),
    ],
)
def test_a_package_that_is_missing(python: Start, package: str, command: str) -> None:
    done = python("-c", WITHOUT.format(package=package), *command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"firsttouch: {command.split()[0]} needs {package}: python -m pip install {package}\n"


@pytest.mark.linux("bash")
@pytest.mark.parametrize(("end", "said"), [("| true", ""), ("> /dev/full", "No space left on device")])
def test_output_that_goes_nowhere(end: str, said: str) -> None:
    done = execute("bash", "-c", f"{sys.executable} -m firsttouch --info {end}")
    assert said in done.stderr
    assert done.stderr.count("\n") == (1 if said else 0)


@pytest.mark.parametrize("command", ["", *COMMANDS, *ABOUT])
def test_help_has_examples_and_fits_a_terminal(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    def shown(*words: str) -> str:
        with contextlib.suppress(SystemExit):
            assert main(words) == 0
        return capsys.readouterr().out

    text = shown(*command.split(), "--help")
    assert "for example:\n  " in text
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert command == "" or shown("help", command) == text

"""Usage errors print one line to standard error with a suggestion, and exit with status 2."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from firsttouch.tools.cli import output
from firsttouch.tools.cli.main import COMMANDS

from .conftest import Start, clean_environment

Write = Callable[[str, str], Path]


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("firsttouch: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "missing command"),
        (["rnu"], "did you mean run?"),
        (["script.py"], "firsttouch run script.py"),
        (["run"], "missing program"),
        (["run", "-q"], "missing program"),
        (["run", "-m"], "-m needs the name of a module"),
        (["run", "-c"], "-c needs the code"),
        (["run", "--qiet", "script.py"], "did you mean --quiet?"),
        (["run", "--jsn", "out.json", "script.py"], "did you mean --json?"),
        (["run", "--max-ilde=1GiB", "script.py"], "did you mean --max-idle?"),
        (["run", "python3", "script.py"], "omit python3"),
        (["run", "--json", "script.py", "other.py"], "--json takes a file to write"),
        (["run", "--max-idle", "4", "GiB", "script.py"], 'quote a size with a space, as in "4 GiB"'),
        (["run", "--json"], "--json: expected one argument"),
        (["run", "-O", "script.py"], "python -O -m firsttouch run"),
        (["run", "-X", "dev", "script.py"], "python -X -m firsttouch run"),
        (["run", "--max-idle", "script.py"], "missing program: script.py was read as the value of --max-idle"),
        (["run", "--max-idle", "lots", "script.py"], "--max-idle"),
        (["run", "--max-idle=-1", "script.py"], "--max-idle"),
        (["run", "--max-idle", "", "script.py"], "--max-idle"),
        (["run", "--decay", "soon", "script.py"], "'soon' is not a duration"),
        (["run", "--decay=-1", "script.py"], "'-1' is not a duration"),
        (["run", "--decay", "nan", "script.py"], "'nan' is not a duration"),
        (["run", "--decay", "inf", "script.py"], "never"),
        (["run", "--decay", "1e20", "script.py"], "'1e20' is not a duration"),
        (["run", "--decay", "1e20", "sh"], "'1e20' is not a duration"),
        (["run", "--all", "--threshold", "1KiB", "script.py"], "--threshold: 1KiB is below 16 KiB"),
        (["help", "rnu"], "did you mean run?"),
        (["advise", "--lines", "x", "script.py"], "--lines: takes a number of lines, 1 or more, not 'x'"),
        (["info", "--jsn", "-"], "did you mean --json?"),
        (["info", "more"], "unexpected argument more"),
        (["info", "--json", "no/such/folder/x.json"], "cannot write no/such/folder/x.json: no such directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistake_gets_one_line(firsttouch: Start, write: Write, words: list[str], said: str) -> None:
    write("script.py", "print('it ran')")
    assert said in one_line(firsttouch(*words))


def test_help_of_a_command_by_word(firsttouch: Start) -> None:
    assert firsttouch("help", "run").stdout == firsttouch("run", "--help").stdout


def test_refused_size_shows_what_is_accepted(firsttouch: Start) -> None:
    said = one_line(firsttouch("run", "--max-idle", "lots", "-c", "1"))
    assert "lots" in said
    assert "GiB" in said


@pytest.mark.parametrize("size", ["512MiB", "4 GiB", "4gib", "4 GB ", "1048576", "0"])
def test_sizes_people_write_are_taken(firsttouch: Start, size: str) -> None:
    code = "import numpy, firsttouch; print(firsttouch.is_installed())"
    done = firsttouch("run", "-q", "--max-idle", size, "-c", code)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("decay", ["0", "0.5", "30", "never"])
def test_times_people_write_are_taken(firsttouch: Start, decay: str) -> None:
    code = "import numpy, firsttouch; print(firsttouch.is_installed())"
    done = firsttouch("run", "-q", f"--decay={decay}", "-c", code)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_without_site_nothing_would_start_us(firsttouch: Start) -> None:
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = firsttouch("run", "-c", "print('it ran')", before=("-S",), environment=path)
    assert "omit -S" in one_line(done)


def test_package_by_pythonpath_has_no_start_file(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    path = os.pathsep.join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *filter(None, sys.path)})
    done = subprocess.run(
        [python, "-m", "firsttouch", "run", "-c", "print('it ran')"],
        env=clean_environment(PYTHONPATH=path),
        capture_output=True,
        text=True,
        check=False,
    )
    said = one_line(done)
    assert "no firsttouch_start.pth" in said
    assert f"install firsttouch there, with {python} -m pip" in said


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_examples_and_fits_a_terminal(firsttouch: Start, command: str) -> None:
    done = firsttouch(*command.split(), "--help", environment={"COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "for example:\n  " in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_sentence_fits_the_terminal_and_is_one_line_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "firsttouch: pooled memory would save much: firsttouch run 'my script.py' " + "-x --long-option " * 9
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output.wrapped(sentence, StringIO()) == sentence
    assert output.wrapped(sentence, None) == sentence
    monkeypatch.setenv("COLUMNS", "80")
    lines = output.wrapped(sentence, Terminal()).splitlines()
    assert output.wrapped(sentence, StringIO()).splitlines() == lines
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == sentence.strip()


def test_version(firsttouch: Start) -> None:
    import firsttouch as package

    assert firsttouch("--version").stdout == f"firsttouch {package.__version__}\n"


@pytest.mark.parametrize("words", [["nonexist\udcff"], ["run", "--xx\udcff", "s.py"], ["trace", "--xx\udcff", "s.py"]])
def test_words_that_are_not_utf_8(firsttouch: Start, words: list[str]) -> None:
    done = firsttouch(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr

"""Python's own options, recovered from its command line."""

import sys

import pytest

from firsttouch.tools.cli import program


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["-m", "firsttouch", "run"], []),
        (["/bin/firsttouch", "-q", "run"], []),
        (["/bin/firsttouch"], []),
        (["-I", "-X", "dev", "-m", "firsttouch"], ["-I", "-X", "dev"]),
        (["-Xdev", "-Werror", "-m", "firsttouch"], ["-Xdev", "-Werror"]),
        (["-W", "-m", "-O", "script"], ["-W", "-m", "-O"]),
        (["-Im", "firsttouch", "run", "-O"], ["-I"]),
        (["-uOmfirsttouch", "run"], ["-uO"]),
        (["-mfirsttouch", "-O"], []),
        (["-OW", "error", "-c", "x"], ["-OW", "error"]),
        (["-Wignore::Warning:a.m", "script"], ["-Wignore::Warning:a.m"]),
        (["--check-hash-based-pycs", "never", "-m", "x"], ["--check-hash-based-pycs", "never"]),
    ],
)
def test_options_of_the_interpreter(words: list[str], kept: list[str]) -> None:
    assert program.of_python(["python", *words]) == kept


def test_arguments_that_were_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-O", "-m", "firsttouch", "run", "-X"])
    monkeypatch.setattr(sys, "argv", ["firsttouch", *map(str, range(99))])
    assert program.command() == [sys.executable, "-O"]


@pytest.mark.parametrize(
    ("words", "own", "rest"),
    [
        ([], [], None),
        (["script.py", "-q"], [], ("script.py", "-q")),
        (["-q", "script.py"], ["-q"], ("script.py",)),
        (["--json", "x", "-m", "a"], ["--json", "x"], ("-m", "a")),
        (["--json=x", "script.py"], ["--json=x"], ("script.py",)),
        (["--json", "-", "script.py"], ["--json", "-"], ("script.py",)),
        (["-mpackage", "-q"], [], ("-mpackage", "-q")),
        (["-c", "code", "--json"], [], ("-c", "code", "--json")),
        (["-q", "--", "script.py", "--"], ["-q"], ("script.py", "--")),
        (["-"], [], ("-",)),
        (["--json", "1", "--limit", "2", "s.py"], ["--json", "1", "--limit", "2"], ("s.py",)),
    ],
)
def test_where_the_program_begins(words: list[str], own: list[str], rest: tuple[str, ...] | None) -> None:
    found, started = program.split(words, ("--json", "--limit"))
    assert found == own
    assert (started and started.words) == rest

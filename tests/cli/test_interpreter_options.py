"""Python's own options, recovered from its command line."""

import pytest

from firsttouch.tools.cli import program


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["python", "-m", "firsttouch", "run"], []),
        (["python", "/bin/firsttouch", "-q", "run"], []),
        (["python"], []),
        (["python", "-I", "-X", "dev", "-m", "firsttouch"], ["-I", "-X", "dev"]),
        (["python", "-Xdev", "-Werror", "-m", "firsttouch"], ["-Xdev", "-Werror"]),
        (["python", "-W", "-m", "-O", "script"], ["-W", "-m", "-O"]),
        (["python", "-Im", "firsttouch", "run", "-O"], ["-I"]),
        (["python", "-uOmfirsttouch", "run"], ["-uO"]),
        (["python", "-mfirsttouch", "-O"], []),
        (["python", "-OW", "error", "-c", "x"], ["-OW", "error"]),
        (["python", "-OWm", "-c", "x"], ["-OWm"]),
        (["python", "--check-hash-based-pycs", "never", "-m", "x"], ["--check-hash-based-pycs", "never"]),
    ],
)
def test_options_of_the_interpreter(words: list[str], kept: list[str]) -> None:
    assert program.of_python(words) == kept


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
        (["--max-idle", "1", "--decay", "2", "s.py"], ["--max-idle", "1", "--decay", "2"], ("s.py",)),
    ],
)
def test_where_the_program_begins(words: list[str], own: list[str], rest: tuple[str, ...] | None) -> None:
    found, started = program.split(words, ("--json", "--max-idle", "--decay"))
    assert found == own
    assert (started and started.words) == rest

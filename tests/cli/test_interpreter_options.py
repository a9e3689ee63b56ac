"""Python's own options, recovered from its command line."""

import pytest

from firsttouch.tools.cli import program


@pytest.mark.parametrize(
    ("words", "arguments", "kept"),
    [
        (["-m", "firsttouch", "run"], 1, []),
        (["/bin/firsttouch", "-q", "run"], 2, []),
        (["/bin/firsttouch"], 0, []),
        (["-I", "-X", "dev", "-m", "firsttouch"], 0, ["-I", "-X", "dev"]),
        (["-Xdev", "-Werror", "-m", "firsttouch"], 0, ["-Xdev", "-Werror"]),
        (["-W", "-m", "-O", "script"], 0, ["-W", "-m", "-O"]),
        (["-Im", "firsttouch", "run", "-O"], 2, ["-I"]),
        (["-uOmfirsttouch", "run"], 1, ["-uO"]),
        (["-mfirsttouch", "-O"], 1, []),
        (["-OW", "error", "-c", "x"], 0, ["-OW", "error"]),
        (["-Wignore::Warning:a.m", "script"], 0, ["-Wignore::Warning:a.m"]),
        (["--check-hash-based-pycs", "never", "-m", "x"], 0, ["--check-hash-based-pycs", "never"]),
    ],
)
def test_options_of_the_interpreter(words: list[str], arguments: int, kept: list[str]) -> None:
    named = not any(word.endswith(("script", "/bin/firsttouch")) for word in words)
    assert program.of_python(["python", *words], arguments, named) == kept


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

"""Separates the options of firsttouch from the program, and classifies the program."""

from __future__ import annotations

import os
import stat

from firsttouch.tools.cli import BadUsageError, files

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from firsttouch.tools.cli.parser import Parser

#: How a program in machine code begins.
ELF = b"\x7fELF"

#: Letters of python's own options; they belong before `-m firsttouch run`.
_OF_PYTHON = set("bBdEiIOPRsSuvWxX")


class Program:
    """The arguments for python from -m, -c or the script on; or another program's, and its file."""

    def __init__(self, words: tuple[str, ...], executable: str | None = None) -> None:
        self.words = words
        self.executable = executable

    @property
    def through_runpy(self) -> bool:
        """Whether python starts it through runpy: modules, folders and archives."""
        first = self.words[0]
        if first.startswith("-"):
            return first.startswith("-m")
        if os.path.isdir(first):
            return True
        return os.path.isfile(first) and not first.endswith(".py") and _is_archive(first)

    @property
    def can_start(self) -> bool:
        """False if python will certainly reject it; True if it may still do so."""
        first = self.words[0]
        if first.startswith("-"):
            return True
        if os.path.isdir(first):
            return _has_main(first)
        return os.path.exists(first) and os.access(first, os.R_OK)


def find(word: str) -> str | None:
    """Return the file of a program that is not Python's; None if `word` is a Python script, or nothing."""
    here = os.path.dirname(word) or os.path.isfile(word) or _has_main(word)  # any other folder python cannot run
    path = word if here else which(word)
    if path is None or path.endswith(".py") or not os.path.isfile(path):
        return None
    if _start(path).startswith(ELF):
        return None if _is_python(os.path.basename(path)) else path
    return path if interpreter(path) and os.access(path, os.X_OK) else None


def interpreter(path: str) -> str:
    """Return what the first line of a script names to run it, as `/bin/sh`; nothing if that is Python, or no script."""
    first, _, second = _start(path).partition(b"\n")
    of_pip = second.startswith(b"'''exec'")  # a shell's first line, where the path of Python is too long for one
    of_python = any(b"python" in os.path.basename(word) for word in first.split())  # its folder may be called anything
    if path.endswith(".py") or not first.startswith(b"#!") or of_python or of_pip:
        return ""
    return os.fsdecode(first[2:].strip())


def _start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(256)
    except OSError:
        return b""


def which(word: str) -> str | None:
    """Return the file of a command, as :func:`shutil.which`, whose imports would cost more than all others here."""
    for folder in os.get_exec_path():
        path = os.path.join(folder, word)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _has_main(folder: str) -> bool:
    """Return whether python can run a folder."""
    return any(os.path.exists(os.path.join(folder, f"__main__.{end}")) for end in ("py", "pyc"))


def _is_python(name: str) -> bool:
    return name.startswith("python") and not name[len("python") :].strip("0123456789.")


def split(words: Sequence[str], with_value: Sequence[str], of: str = "run") -> tuple[list[str], Program | None]:
    """Split where the program begins; options in `with_value` take the next word."""
    at = own(words, with_value)
    if at == len(words) > 1 and words[-2] in with_value and os.path.isfile(words[-1]):
        raise BadUsageError(f"{of}: missing program: {words[-1]} was read as the value of {words[-2]}")
    if at < len(words) and words[at] == "--":
        return list(words[:at]), _program(words[at + 1 :], of)
    return list(words[:at]), _program(words[at:], of)


def own(words: Sequence[str], with_value: Sequence[str]) -> int:
    """Return how many words are options of firsttouch; the program, -- or nothing follows."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("-", "--") or not word.startswith("-") or (word[:2] in ("-m", "-c") and word[2:3] != "-"):
            return at
        at += 2 if word in with_value else 1
    return len(words)


def _program(words: Sequence[str], of: str) -> Program | None:
    if list(words) in (["-m"], ["-c"]):
        what = {"-m": "the name of a module", "-c": "the code to run"}[words[0]]
        raise BadUsageError(f"{of}: {words[0]} needs {what}")
    if words and of == "run" and (other := find(words[0])):
        return Program(tuple(words), other)
    if words:
        _refuse_command(words[0], of)
        if of != "trace":  # its --summary takes a trace
            files.refuse_trace(of, words[0])
    return Program(tuple(words)) if words else None


def _refuse_command(word: str, of: str) -> None:
    """Catch a program that is not Python's, and the name of a command, which python would not find."""
    if word.startswith("-"):
        return
    ways = {
        "compare": " (firsttouch compare -- takes any command)",
        "advise": f" (firsttouch compare -- {word} measures it)",
    }
    way = ways.get(of, f" (firsttouch run {word} serves it)")
    if os.path.dirname(word) or os.path.exists(word):
        if os.path.isfile(word) and _is_binary(word):
            if _is_python(os.path.basename(word)):
                raise BadUsageError(f"{of}: for another Python, {word} -m firsttouch {of} script.py")
            raise BadUsageError(f"{of}: {word} is not a Python program{way}")
        if os.path.isfile(word) and (its := interpreter(word)):
            if of == "run":
                way = f"firsttouch run {its} {word}"
                raise BadUsageError(f"run: {word} is a script for {its} and not executable: {way}")
            raise BadUsageError(f"{of}: {word} is a script for {its}, not a Python program{way}")
        return
    found = which(word)
    if found is None:
        return
    if _is_python(word):
        raise BadUsageError(f"{of}: omit {word}, which firsttouch starts itself, as in firsttouch {of} script.py")
    if _is_binary(found):
        raise BadUsageError(f"{of}: no file {word} here; the command {found} is not a Python program{way}")
    raise BadUsageError(f"{of}: no file {word} here; the command of that name is {found}: firsttouch {of} {found}")


def _is_binary(path: str) -> bool:
    """Return whether it is machine code; a file that cannot be read may be anything."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == ELF
    except OSError:
        return False


def hint(word: str, of: str = "run") -> str:
    """Return where an option of python's own belongs, if it is one."""
    if not word.startswith("--") and set(word[1:2]) & _OF_PYTHON:
        return f"{word} is an option of python: put it first, as in python {word} -m firsttouch {of} ..."
    return ""


def _is_archive(path: str) -> bool:
    import zipfile  # as slow as all other imports together, and seldom needed

    # Only regular files are examined: reading a pipe would empty it.
    return stat.S_ISREG(os.stat(path).st_mode) and zipfile.is_zipfile(path)


_UNITS = {f"{letter}{rest}" for letter in "KMGT" for rest in ("", "B", "I", "IB")}


def parse(parser: Parser, words: Sequence[str], with_value: Sequence[str]) -> tuple[argparse.Namespace, Program]:
    """Parse the options of firsttouch, and split off the program, which is required."""
    command = parser.command
    own, found = split(words, with_value, command)
    for word in own:
        if parser.unknown(word) and (advice := hint(word, command)):
            raise BadUsageError(f"{command}: {advice}")
    given = parser.parse(own)
    if found is None:
        raise BadUsageError(
            f"{command}: missing program: give a script, -m module or -c code (try firsttouch {command} --help)"
        )
    if found.words[0].upper() in _UNITS and not found.can_start:
        raise BadUsageError(f'{command}: no program {found.words[0]}; quote a size with a space, as in "4 GiB"')
    return given, found


def lines(text: str) -> int:
    """Parse the number of lines of a table."""
    import argparse

    found = int(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{found} lines: expected 1 or more")
    return found

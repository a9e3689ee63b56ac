"""Programs not written in Python: how to recognize them, whether they can be served, and the library's settings."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys

from _firsttouch_start import VARIABLE, rank, speak
from firsttouch.tools import inherited, preload
from firsttouch.tools.cli.parser import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

_ELF = b"\x7fELF"
#: The type of the program header that names the dynamic loader.
_INTERPRETER = 3
#: The number of bytes of a program that are examined; few programs are larger.
_LOOKED_AT = 64 << 20


def find(word: str) -> str | None:
    """Return the file of a program that is not Python's; None if `word` is a Python script, or nothing."""
    path = word if os.path.dirname(word) or os.path.exists(word) else shutil.which(word)
    if path is None or path.endswith(".py") or not os.path.isfile(path):
        return None
    if _start(path).startswith(_ELF):
        return None if re.fullmatch(r"python[0-9.]*", os.path.basename(path)) else path
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


def check(path: str, of: str = "run") -> None:
    """Reject a program that the library cannot serve, with the reason."""
    why = preload.missing() or _obstacle(path)
    if why:
        raise BadUsageError(f"{of}: cannot serve {path}: {why}")


def _obstacle(path: str) -> str | None:
    mode = os.stat(path).st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        return "it is set-uid, and the dynamic loader ignores LD_PRELOAD for such programs"
    try:
        with open(path, "rb") as file:
            content = file.read(_LOOKED_AT)
        return _obstacle_in(content) if content.startswith(_ELF) else None  # a script's interpreter is not examined
    except (OSError, IndexError, KeyError) as error:
        return speak.reason(error)


def _obstacle_in(content: bytes) -> str | None:
    with open(preload.FILE, "rb") as file:
        ours = file.read(20)
    if content[4:6] != ours[4:6] or content[18:20] != ours[18:20]:
        return "it is built for another architecture than this firsttouch"
    loader = _loader(content)
    if loader is None:
        return "it is linked statically, so its malloc cannot be replaced"
    if b"ld-musl" in loader:
        return "it is linked against musl; the library needs glibc"
    if b"\0libasan.so." in content:
        return "it is built with AddressSanitizer, which must see every block"
    return None


def _loader(content: bytes) -> bytes | None:
    """Return the name of the dynamic loader. Assumes a 64-bit file."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(content[at : at + size], sys.byteorder)

    table, length, count = number(32, 8), number(54, 2), number(56, 2)
    for header in range(table, table + length * count, length or 1):
        if number(header, 4) == _INTERPRETER:
            start = number(header + 8, 8)
            return content[start : start + number(header + 32, 8)]
    return None


def environment(settings: Mapping[str, Any], outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the library before anything else that is preloaded, and with its settings."""
    file = str(preload.FILE)
    if set(file) & set(" :"):
        raise BadUsageError(f"run: the dynamic loader cannot preload {file}: its name contains a space or a colon")
    others = [other for other in re.split("[ :]+", outer.get("LD_PRELOAD", "")) if other not in ("", file)]
    return {**outer, "LD_PRELOAD": ":".join([file, *others]), preload.VARIABLE: told(settings)}


def told(settings: Mapping[str, Any]) -> str:
    """Format the settings for the library. The name of a file comes last, because it may contain anything."""
    words = [f"{name}={settings[name]}" for name in ("threshold", "max_idle") if settings.get(name) is not None]
    if "decay" in settings:
        words.append(f"decay={'never' if settings['decay'] is None else settings['decay']}")
    pattern = settings.get("json") or ""
    fields = rank.fields(pattern)
    words.append(f"report={os.getpid()}")
    if settings.get("quiet") or not rank.is_first():
        words.append("quiet=1")
    if pattern and (fields or rank.is_first()):
        words.append("json=" + rank.fill_rank(pattern))
    return " ".join(words)


def become(path: str, words: Sequence[str], settings: Mapping[str, Any]) -> NoReturn:
    """Replace this process by the program."""
    outer = {name: value for name, value in inherited.environment().items() if name != VARIABLE}
    inherited.restore_signals()
    try:
        os.execve(path, list(words), environment(settings, outer))
    except OSError as error:
        raise BadUsageError(f"run: cannot start {path}: {speak.reason(error)}") from None

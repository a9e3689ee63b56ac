"""The interpreter to start: this one, with the options that its caller gave it."""

from __future__ import annotations

import sys

from firsttouch.tools.cli.usage import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Options of python's whose value may be the word behind them.
_WITH_VALUE = "WX"


def command(of: str = "run") -> list[str]:
    """Say how to start this same interpreter again; `of` is the command that asks."""
    if not sys.executable:
        raise BadUsageError(f"{of}: Python does not know its own program file (sys.executable is empty)")
    return [sys.executable, *options(sys.orig_argv)]


def options(words: Sequence[str]) -> list[str]:
    """Take python's own options from its command line; what follows them is not kept.

    They end before -m, -c or the first word that is no option. Letters may be joined,
    as in `-Im firsttouch`.
    """
    kept: list[str] = []
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word.startswith("--"):  # --check-hash-based-pycs is the only one, and takes a word
            kept += [word, *rest[:1]]
            del rest[:1]
            continue
        letters, ends = _before_program(word[1:])
        if letters:
            kept.append(f"-{letters}")
        if ends:
            break
        if letters and letters[-1] in _WITH_VALUE and not _holds_value(letters):
            kept += rest[:1]
            del rest[:1]
    return kept


def _before_program(letters: str) -> tuple[str, bool]:
    """Cut a group of letters at the m or c that names the program, if one does."""
    for at, letter in enumerate(letters):
        if letter in _WITH_VALUE:
            return letters, False
        if letter in "mc":
            return letters[:at], True
    return letters, False


def _holds_value(letters: str) -> bool:
    """Whether the first W or X of the group has its value in the same word."""
    first = min(letters.index(letter) for letter in _WITH_VALUE if letter in letters)
    return first < len(letters) - 1

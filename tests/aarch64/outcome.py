"""What a guest printed, program by program."""

from __future__ import annotations

import re
from typing import NamedTuple

_ENDED = re.compile(r"^program (\S+)\n(.*?)^ended \1 (\d+) (\d+)$", re.MULTILINE | re.DOTALL)
_RESULT = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_PYTEST = re.compile(r"^(?:=+ )?(\d+ \w+, .*|\d+ passed.*) in [\d.]+s", re.MULTILINE)


class Outcome(NamedTuple):
    """How one program ended."""

    name: str
    fine: bool
    words: str
    """For people: counts, or what went wrong."""
    printed: str


def outcomes(printed: str) -> list[Outcome]:
    """Each program's, in the order of their running; one that did not end is not among them."""
    return [_outcome(*found.groups()) for found in _ENDED.finditer(printed)]


def _outcome(name: str, text: str, code: str, seconds: str) -> Outcome:
    counts = _RESULT.findall(text)
    words = "{} passed, {} failed, {} ignored".format(*counts[-1]) if counts else "no count"
    if python := _PYTEST.search(text):
        words = python[1]
    failed = re.findall(r"^test (\S+) \.\.\. FAILED$", text, re.MULTILINE)
    if code == "137":
        words = f"killed after {seconds} s"
    elif code != "0" and not failed:
        words = f"ended with {code}"
    return Outcome(name, code == "0", f"{', '.join([words, *failed])} ({seconds} s)", text)

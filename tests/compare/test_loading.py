"""The note on what loading firsttouch takes is about what served programs load."""

import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.tools.compare.candidates import environment
from firsttouch.tools.compare.comparison import Outcome, Row
from firsttouch.tools.compare.report import LOADED, loading
from firsttouch.tools.compare.runs import Run
from firsttouch.tools.measuring.contenders import Contender

LOADS = "import sys; print(sorted(name for name in sys.modules if name.partition('.')[0] == 'firsttouch'))"


def modules(code: str, contender: Contender) -> str:
    words = [sys.executable, "-c", f"import numpy; {code}; {LOADS}"]
    return subprocess.run(words, env=environment(contender), capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("install", [True, "mimalloc()", "pool(pages())"])
def test_what_is_timed_is_what_a_program_loads(install: bool | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)  # not the checkout, whose package has no native module
    served = modules("pass", Contender("served", install=install))
    assert served != "[]\n"
    assert modules(LOADED[isinstance(install, str)], Contender("the default")) == served


def test_it_names_both_ways_and_is_left_out_where_nothing_is_served() -> None:
    def said(*installed: bool | str) -> str | None:
        rows = [Row(Contender("one", install=install), [Run(1.0, 0.0, 0.0, 0, 0, 0, 0)]) for install in installed]
        return loading(Outcome(rows, 1, "", 1.0, []))

    assert said(False) is None
    assert " for an expression" not in (said(False, True) or "")
    assert ", in each Python process" in (said(True, "mimalloc()") or "")
    assert " for an expression" in (said(True, "mimalloc()") or "")

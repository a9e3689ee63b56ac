"""Subinterpreters are refused, and leave the main interpreter as it was."""

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick

PROGRAM = """
{before}
from tests import probe
print(probe.in_interpreter({kind!r}, "import firsttouch"))
import firsttouch as ft
ft.install()
print(ft.zeros(3), ft.scratch(lambda: ft.ones(100_000).sum())())
"""


@pytest.mark.parametrize("before", ["", "import firsttouch"])
@pytest.mark.parametrize("kind", ["isolated", "legacy"])
def test_a_subinterpreter_is_told_so_and_the_main_one_goes_on(kind: str, before: str) -> None:
    said, *rest = run(PROGRAM.format(kind=kind, before=before), prologue="").splitlines()
    assert "ImportError" in said
    assert "firsttouch does not support subinterpreters" in said
    assert rest == ["[0. 0. 0.] 100000.0"]

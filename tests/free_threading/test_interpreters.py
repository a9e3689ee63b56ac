"""Subinterpreters are refused, and leave the main interpreter as it was."""

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick

PROGRAM = """
import sys
{before}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
if sys.version_info >= (3, 13):
    other = interpreters.create({kind!r})
    said = interpreters.exec(other, "import firsttouch")
    said = None if said is None else said.formatted
else:
    other = interpreters.create(isolated={kind!r} == "isolated")
    try:
        said = interpreters.run_string(other, "import firsttouch")
    except Exception as error:
        said = str(error)
print(said)
interpreters.destroy(other)
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

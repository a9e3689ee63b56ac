"""Whole programs compute the same number on either memory, and a pool gives back little that they need again."""

import pytest

from benchmarks.experiments.programs import WHOLE, measure
from benchmarks.measuring import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.processes import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", WHOLE)
def test_a_program_finds_again_what_it_left(program: str) -> None:
    if program == "etl_pandas":
        pytest.importorskip("pandas")
    one, other = (ask(contender, measure, program=WHOLE[program]) for contender in (NUMPY, FIRSTTOUCH))
    assert other["result"] == pytest.approx(one["result"], rel=1e-9)
    assert other["again"] <= 0.05
    assert other["faults"] < one["faults"]

"""Whole programs compute the same number on either memory, and a pool gives back little that they need again."""

import pytest

from benchmarks.experiments.programs import WHOLE
from benchmarks.workers import Worker
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.processes import Call

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", WHOLE)
def test_a_program_finds_again_what_it_left(program: str) -> None:
    if program == "etl_pandas":
        pytest.importorskip("pandas")
    call = Call("benchmarks.experiments.programs", "measure", {"program": WHOLE[program]})
    with Worker(NUMPY) as plain, Worker(FIRSTTOUCH) as pooled:
        one, other = plain.ask(call), pooled.ask(call)
    assert other["result"] == pytest.approx(one["result"], rel=1e-9)
    assert other["again"] <= 0.05
    assert other["faults"] < one["faults"]

"""Whole programs compute the same number on either memory, and a pool gives back little that they need again."""

import importlib
from pathlib import Path

import pytest

from benchmarks.experiments.built_once import AHEAD
from benchmarks.programs import BUILT_ONCE, NAMES
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.rounds import Call, Worker

pytestmark = pytest.mark.slow


def test_every_program_is_a_file() -> None:
    found = {
        path.stem for path in Path(str(importlib.import_module("benchmarks.programs").__file__)).parent.glob("*.py")
    }
    assert found - {"__init__"} == {*NAMES, *BUILT_ONCE}


@pytest.mark.parametrize("program", NAMES)
def test_a_program_finds_again_what_it_left(program: str) -> None:
    if program == "etl_pandas":
        pytest.importorskip("pandas")
    call = Call("benchmarks.tasks.whole", "measure", {"program": program})
    with Worker(NUMPY) as plain, Worker(FIRSTTOUCH) as pooled:
        one, other = plain.ask(call), pooled.ask(call)
    assert other["result"] == pytest.approx(one["result"], rel=1e-9)
    assert "again" not in one
    assert other["again"] <= 0.05
    assert other["faults"] < one["faults"]


@pytest.mark.parametrize("program", BUILT_ONCE)
def test_what_is_built_once_is_the_same_with_a_helper(program: str) -> None:
    call = Call("benchmarks.tasks.whole", "measure", {"program": program})
    with Worker(NUMPY) as plain, Worker(AHEAD) as helped:
        assert helped.ask(call)["result"] == pytest.approx(plain.ask(call)["result"], rel=1e-9)

"""Each line of a program is served by the memory chosen for it, and charged with its time; what follows from that."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import programs
from benchmarks.experiments.oracle import bound, changed
from benchmarks.tasks import sites

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")

PROGRAM = """\
import time
import numpy as np
import firsttouch as ft
served = []
def made():
    array = np.ones(100_000)
    end = time.process_time() + 0.05
    while time.process_time() < end: pass
    return array
def run():
    one = np.ones(100_000)
    both = (made(), np.ones(100_000))
    last = np.ones(100_000)
    served[:] = [repr(ft.get_allocator(array)) for array in (one, *both, last)]
    return float(one[0])
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "little.py").write_text(PROGRAM)
    monkeypatch.setattr(programs, "__path__", [str(tmp_path)])
    yield "little"
    sys.modules.pop("benchmarks.programs.little", None)


def test_a_line_is_served_by_its_own_memory_after_a_call_too(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {6: "malloc()", 11: "pages(huge=False)", 12: "mimalloc()"}
    for name, value in sites.chosen("aligned(4096)", lines).items():
        monkeypatch.setenv(name, value)
    assert sites.measure(program)["result"] == 1.0
    served = importlib.import_module("benchmarks.programs.little").served
    assert served == ["pages(huge=False)", "malloc()", "mimalloc()", "aligned(4096)"]


def test_a_line_may_be_served_from_scratch_memory(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in sites.chosen("malloc()", {13: sites.SCRATCH}).items():
        monkeypatch.setenv(name, value)
    sites.measure(program)
    served = importlib.import_module("benchmarks.programs.little").served
    assert served[:3] == ["malloc()"] * 3
    assert "scratch" in served[3].lower()


def test_time_belongs_to_the_line_that_took_it(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in sites.chosen("malloc()").items():
        monkeypatch.setenv(name, value)
    reply = sites.measure(program)
    assert reply["8"] > 0.04
    assert reply["seconds"] == pytest.approx(sum(reply[str(line)] for line in (*range(6, 10), *range(11, 16))))
    assert reply["seconds"] - reply["8"] < 0.04


def test_the_bound_takes_the_least_of_each_line() -> None:
    random = np.random.default_rng(0)
    spent = np.repeat([[[3.0], [1.0]], [[1.0], [2.0]]], 4, axis=2)  # in all 4 and 3, at the least 1 and 1
    assert np.allclose(bound(spent, random), 3.0 / 2.0)
    spent[1, 0, 0] = 100.0  # one slow round of four changes no median
    assert bound(spent, random)[0] == pytest.approx(3.0 / 2.0)


def test_a_line_changes_where_it_gains_in_every_round() -> None:
    spent = np.ones((3, 2, 4))
    spent[1, 0] = 0.9
    spent[2, 0] = 0.8
    spent[:2, 1] = 0.9
    spent[1, 1] = 0.5
    spent[1, 1, 0] = 2.0
    assert changed(spent, 0) == {0: 2}

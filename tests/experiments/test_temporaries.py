"""Expressions mean the same in both ways and under every allocator."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from firsttouch.tools.bench import temporaries
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.bench.tasks import temporaries as task
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.forked import forked
from firsttouch.tools.measuring.picture import save
from firsttouch.tools.measuring.rounds import Samples

KIB = 1 << 10


@pytest.mark.parametrize("name", task.EXPRESSIONS)
def test_both_ways_give_equal_results(name: str) -> None:
    expression = task.EXPRESSIONS[name]
    a, b, t, u = task.operands(64 * KIB, expression)
    random = np.random.default_rng(0)
    a[:], b[:] = random.random(a.shape), random.random(b.shape) + 0.5
    kept = a.copy(), b.copy()
    plain = expression.plain(a, b)
    warm = expression.warm(a, b, t, u)
    np.testing.assert_array_equal(plain, warm)
    np.testing.assert_array_equal((a, b), kept)
    assert np.ndim(warm) == 0 or warm is t  # into the memory that was there
    assert plain.dtype == expression.dtype


@pytest.mark.parametrize("threads", [1, 2])
def test_every_expression_is_timed_in_every_thread(threads: int) -> None:
    reply = task.measure(64 * KIB, threads, (0, 1, 1, 0), 0.0)
    assert len(reply) == len(task.EXPRESSIONS) * 2 * 3
    for name in task.EXPRESSIONS:
        assert reply[f"{name} plain"] > 0
        assert reply[f"{name} plain result"] == reply[f"{name} warm result"]


def test_warm_memory_is_not_made_again() -> None:
    reply = forked(lambda: task.one("a + b", 8 << 20, 1, (0, 1, 1), 0.0))
    assert reply["a + b warm faults"] < 100


def test_what_a_measurement_does_stays_in_its_fork() -> None:
    kept: list[int] = []

    def measured() -> dict[str, float]:
        kept.append(1)
        return {"length": len(kept)}

    assert forked(measured) == {"length": 1}
    assert kept == []


def test_a_fork_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError"):
        forked(lambda: {"never": 1 / 0})

    def killed() -> dict[str, float]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    with pytest.raises(RuntimeError, match=r"ended without an answer"):
        forked(killed)


def test_results_that_differ_stop_the_experiment() -> None:
    samples = Samples()
    reply = {f"{name} {way} result": 1.0 for name in task.EXPRESSIONS for way in ("plain", "warm")}
    samples.add(NUMPY.name, 0, reply)
    temporaries.same_results(samples)
    samples.add("other", 0, {**reply, "a + b plain result": 2.0})
    with pytest.raises(RuntimeError, match=r"a \+ b: the results differ"):
        temporaries.same_results(samples)


def test_a_quick_run_with_one_more_allocator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _who: {0})
    section = temporaries.run(Settings(quick=True, sizes=(1000, 64 * KIB), allocators=("pool(malloc())",)))
    (table,) = section.tables
    assert len(table.rows) == 2 * len(task.EXPRESSIONS) + 1
    assert [row[1] for row in table.rows[:2]] == ["4 KiB", "64 KiB"]  # whole pages
    assert "pool(malloc())" in table.columns
    assert "pool(malloc())" in section.notes[-1]
    save(section.pictures, tmp_path / "all.png")

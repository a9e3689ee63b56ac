"""Throughput in threads is counted in all of them, and what the machine cannot show is said."""

import os
from pathlib import Path

import pytest

from firsttouch.tools.bench import scaling
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.bench.tasks import scaling as task
from firsttouch.tools.measuring.picture import save

KIB = 1 << 10


def test_threads_are_doubled_up_to_the_processors() -> None:
    assert scaling.counts(1) == [1]
    assert scaling.counts(2) == [1, 2]
    assert scaling.counts(6) == [1, 2, 4, 6]


def test_all_threads_count() -> None:
    reply = task.measure(64 * KIB, [1, 3], 0.0)
    assert {name.partition(" ")[2] for name in reply} == {
        "rate", "per processor second", "faults", "system", "switches"
    }  # fmt: skip
    assert reply["1 rate"] > 0
    assert reply["3 rate"] > 0
    assert 0 <= reply["3 system"] <= 1


def test_every_thread_evaluates_at_least_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    evaluate = task.evaluate

    def noted(nbytes: int, seconds: float, together: object, counts: list[int], at: int) -> None:
        evaluate(nbytes, seconds, together, counts, at)  # type: ignore[arg-type]
        done.append(counts[at])

    monkeypatch.setattr(task, "evaluate", noted)
    task.one(64 * KIB, 3, 0.0)
    assert done == [1, 1, 1]


@pytest.mark.parametrize(("cores", "words"), [(1, "There is one processor"), (2, "hardly show"), (64, "tracing")])
def test_what_the_machine_cannot_show_is_said(cores: int, words: str) -> None:
    said = scaling.remarks(cores, ["tcmalloc"])
    assert any(words in sentence for sentence in said)
    assert said[-1] == "tcmalloc is not installed here."


def test_a_quick_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(task, "processors", lambda: 2)
    monkeypatch.setattr(scaling, "processors", lambda: 2)
    monkeypatch.setattr(scaling, "SECONDS", 0.03)
    section = scaling.run(Settings(quick=True, sizes=(64 * KIB,), allocators=("pool(malloc())",)))
    rates, costs = section.tables
    assert [row[:2] for row in rates.rows] == [["64 KiB", "1"], ["64 KiB", "2"]]
    assert len(costs.columns) == 2 + 2 * (len(rates.columns) - 2)
    assert "pool(malloc())" in rates.columns
    assert section.notes[-1].startswith("**In 2 threads, over all sizes**: NumPy 1.00")
    save(section.pictures, tmp_path / "all.png")
    assert os.path.getsize(tmp_path / "all.png") > 0

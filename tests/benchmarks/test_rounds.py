"""Workers, their environment, and the order in which they run."""

from pathlib import Path

import pytest

from benchmarks.experiments.memory import charged
from benchmarks.measuring import Plan, collect, fitting
from benchmarks.workers import Worker
from firsttouch._internal.process_memory import peak, reset_peak, resident, touch
from firsttouch.tools.bench.common import name
from firsttouch.tools.measuring.contenders import NUMPY, Contender, library, preloaded
from firsttouch.tools.measuring.processes import Call

PEAK = Call("benchmarks.experiments.memory", "measure", {"program": "sparse", "wait": 0.0})


def test_every_round_asks_every_contender_once() -> None:
    other = Contender("other", {"SOMETHING": "1"})
    call = Call("benchmarks.experiments.expression", "measure", {"nbytes": 8192, "seconds": 0.0})
    samples = collect([NUMPY, other], call, Plan(2, 3), footprint=1 << 20)
    assert samples.column(NUMPY, "seconds").shape == (2, 3)
    assert samples.ratio(NUMPY, other, "seconds").min() > 0


def test_processes_that_run_alone_answer_too() -> None:
    call = Call("benchmarks.experiments.programs", "measure", {"module": "benchmarks.kernels.haversine"})
    samples = collect([NUMPY], call, Plan(2, 1), alone=True)
    assert len(set(samples.column(NUMPY, "result").ravel())) == 1


def test_an_error_in_a_worker_is_shown_with_its_traceback() -> None:
    with (
        Worker(NUMPY) as worker,
        pytest.raises(RuntimeError, match=r"worker of NumPy(.|\n)*KeyError: 'sparse'"),
    ):
        worker.ask(PEAK)


def test_a_preload_that_did_not_happen_is_an_error() -> None:
    missing = Contender("missing", {"LD_PRELOAD": "/nowhere/libnothing.so.1"})
    with Worker(missing) as worker, pytest.raises(RuntimeError, match="was not loaded"):
        worker.check()


@pytest.mark.parametrize("peer", preloaded()[0], ids=lambda peer: peer.name)
def test_a_preloaded_peer_is_really_loaded(peer: Contender) -> None:
    with Worker(peer) as worker:
        worker.check()


def test_a_peer_of_any_version_is_found_where_libraries_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("libmimalloc.so.3.4.3", "libmimalloc-secure.so.3.4", "libtcmalloc_minimal.so.4"):
        (tmp_path / file).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f":/nowhere:{tmp_path}")
    assert library("mimalloc") == tmp_path / "libmimalloc.so.3.4.3"
    assert library("tcmalloc") == tmp_path / "libtcmalloc_minimal.so.4"


def test_memory_readings_see_what_was_touched() -> None:
    before = resident()
    reset_peak()
    touch(64 << 20)
    assert peak() - before > 60 << 20
    assert resident() - before < 8 << 20
    group = charged()
    assert group is None or group > 0


def test_sizes_are_named_and_those_that_do_not_fit_are_told() -> None:
    assert [name(size) for size in (8, 64 << 10, 7 << 19, 4 << 30)] == ["8 bytes", "64 KiB", "3.5 MiB", "4 GiB"]
    kept, notes = fitting([1 << 10, 1 << 60], 2)
    assert kept == [1 << 10]
    assert "1,024 PiB" in notes[0]

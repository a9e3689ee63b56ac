"""Workers, their environment, and the order in which they run."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiments.temporaries import OPERATIONS
from benchmarks.kernels import NAMES as KERNELS
from benchmarks.measuring import Plan, collect
from benchmarks.workers import Worker
from firsttouch.tools.measuring.contenders import NUMPY, Contender, library
from firsttouch.tools.measuring.processes import Call


def test_every_round_asks_every_contender_once() -> None:
    other = Contender("other", {"SOMETHING": "1"})
    call = Call("benchmarks.experiments.temporaries", "measure", {"nbytes": 8192, "seconds": 0.0})
    samples = collect([NUMPY, other], call, Plan(2, 3), footprint=1 << 20)
    for operation in OPERATIONS:
        assert samples.column(NUMPY, operation).shape == (2, 3)
        assert samples.ratio(NUMPY, other, operation).min() > 0


def test_an_error_in_a_worker_is_shown_with_its_traceback() -> None:
    call = Call("benchmarks.experiments.programs", "measure", {"module": "sparse"})
    with Worker(NUMPY) as worker, pytest.raises(RuntimeError, match=r"worker of NumPy(.|\n)*No module named 'sparse'"):
        worker.ask(call)


def test_a_preload_that_did_not_happen_is_an_error() -> None:
    missing = Contender("missing", {"LD_PRELOAD": "/nowhere/libnothing.so.1"})
    with Worker(missing) as worker, pytest.raises(RuntimeError, match="was not loaded"):
        worker.check()


def test_a_peer_of_any_version_is_found_where_libraries_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("libmimalloc.so.3.4.3", "libmimalloc-secure.so.3.4", "libtcmalloc_minimal.so.4"):
        (tmp_path / file).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f":/nowhere:{tmp_path}")
    assert library("mimalloc") == tmp_path / "libmimalloc.so.3.4.3"
    assert library("tcmalloc") == tmp_path / "libtcmalloc_minimal.so.4"


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_gives_a_number(kernel: str) -> None:
    assert np.isfinite(importlib.import_module(f"benchmarks.kernels.{kernel}").run())

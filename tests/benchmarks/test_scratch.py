"""The functions of the experiment on scratch memory, with small sizes."""

import numpy as np
import pytest

from benchmarks.experiments import scratch
from benchmarks.workers import Worker
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.processes import Call

KIB = 1 << 10


@pytest.mark.parametrize("name", scratch.FUNCTIONS)
def test_every_kind_of_a_function_gives_the_same(name: str) -> None:
    a, b = np.linspace(1.0, 2.0, 4096), np.linspace(3.0, 4.0, 4096)
    results = [function(a, b) for function in scratch.kinds(name).values()]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_a_round_reports_every_function_kind_and_spread() -> None:
    call = Call("benchmarks.experiments.scratch", "measure", {"nbytes": 16 * KIB, "seconds": 0.001})
    with Worker(NUMPY) as worker:
        reply = worker.ask(call)
    assert len(reply) == 2 * 4 * 2
    assert all(value >= 1.0 for key, value in reply.items() if key.endswith("spread"))

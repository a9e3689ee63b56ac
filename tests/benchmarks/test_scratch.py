"""The tasks of the experiments on scratch memory, with small sizes."""

import numpy as np
import pytest

from benchmarks.tasks import scratch, scratch_cost, scratch_edge, scratch_filter, scratch_memory
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.rounds import Call, Worker

KIB = 1 << 10


@pytest.mark.parametrize("name", scratch.FUNCTIONS)
def test_every_kind_of_a_function_gives_the_same(name: str) -> None:
    a, b = np.linspace(1.0, 2.0, 4096), np.linspace(3.0, 4.0, 4096)
    results = [function(a, b) for function in scratch.kinds(name).values()]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_a_round_reports_every_function_kind_and_spread() -> None:
    call = Call("benchmarks.tasks.scratch", "measure", {"nbytes": 16 * KIB, "seconds": 0.001})
    with Worker(NUMPY) as worker:
        reply = worker.ask(call)
    assert len(reply) == 2 * 4 * 2
    assert all(value >= 1.0 for key, value in reply.items() if key.endswith("spread"))


@pytest.mark.parametrize("name", scratch_edge.LOOPS)
@pytest.mark.parametrize("where", scratch_edge.BEFORE)
def test_a_loop_runs_in_both_places(name: str, where: str) -> None:
    assert scratch_edge.LOOPS[name](where, 20) > 0


def test_only_the_edge_takes_a_second_chunk() -> None:
    import firsttouch as ft

    held = {}
    for where, before in scratch_edge.BEFORE.items():
        buffer = ft.ScratchBuffer(scratch_edge.CHUNK)
        with ft.scratch(buffer) as scope:
            kept = scratch_edge.filled(scope, before)
            scope.empty(scratch_edge.TURN, np.uint8)
            held[where] = buffer.capacity
            del kept
    assert held == {"middle": scratch_edge.CHUNK, "edge": 2 * scratch_edge.CHUNK}


def test_every_cost_is_measured() -> None:
    assert all(0 < value < 1 for value in scratch_cost.measure(10).values())


@pytest.mark.parametrize("program", scratch_memory.PROGRAMS)
def test_a_long_loop_holds_what_it_may(program: str) -> None:
    reply = scratch_memory.measure(program, 128 * KIB, 1000)
    assert reply["left"] == 0
    assert reply["lived"] <= reply["held"] <= max(4 * reply["lived"], 1 << 20)


def test_the_filter_is_the_same_in_every_way() -> None:
    example = scratch_filter.example()
    image = example.blurred_image(40)
    results = [example.sharpened(step, image, 3) for step in example.ways((40, 40)).values()]
    assert np.isfinite(results[0]).all()
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_the_filter_by_hand_takes_images_that_are_not_square() -> None:
    example = scratch_filter.example()
    image = np.random.default_rng(0).random((24, 37)) + 0.1
    plain, _, kept = (example.sharpened(step, image, 3) for step in example.ways((24, 37)).values())
    np.testing.assert_array_equal(plain, kept)
